#include "launcher/control/worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace strata::launcher {

void Worlds::admit(Said said) {
  said_ = std::move(said);
  std::ranges::sort(said_.numbers);
  are_said_ = true;
}

bool Worlds::admits(int world) const {
  if (world < std::max(range_.least, 1) || world > range_.most) return false;
  return !are_said_ || std::ranges::binary_search(said_.numbers, world);
}

std::optional<std::vector<int>> Worlds::place(std::span<const int> slots) const {
  int left = std::accumulate(slots.begin(), slots.end(), 0);
  while (left > 0 && !admits(left)) --left;
  if (left <= 0) return {};
  std::vector<int> ranks;
  for (const int here : slots) {
    ranks.push_back(std::min(here, left));
    left -= ranks.back();
  }
  return ranks;
}

std::string Worlds::describe() const {
  if (!are_said_) return fmt::format("at least {} ranks", range_.least);
  std::vector<int> shown;
  std::ranges::copy_if(said_.numbers, std::back_inserter(shown), [&](int n) { return admits(n); });
  if (shown.empty()) return "no number of ranks";
  const std::string last = std::to_string(shown.back());
  shown.pop_back();
  return (shown.empty() ? last : fmt::format("{} or {}", fmt::join(shown, ", "), last)) + " ranks";
}

std::optional<Worlds::Said> parse_worlds(std::string_view text) {
  constexpr std::string_view kKeep = "keep ";
  Worlds::Said said{.may_grow = !text.starts_with(kKeep)};
  if (!said.may_grow) text.remove_prefix(kKeep.size());
  while (!text.empty()) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 1) return {};
    said.numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ' ' || text.size() == 1) return {};
    text.remove_prefix(1);
  }
  return said;
}

}  // namespace strata::launcher

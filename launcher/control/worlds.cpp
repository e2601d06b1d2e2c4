#include "launcher/control/worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "core/integer.h"

namespace strata::launcher {

void Worlds::admit(Said said) {
  said_ = std::move(said);
  std::ranges::sort(said_.numbers);
  are_said_ = true;
}

int Worlds::least() const { return std::max({range_.least, least_hosts_, 1}); }

bool Worlds::admits(int world) const {
  if (world < least() || world > range_.most) return false;
  return !are_said_ || std::ranges::binary_search(said_.numbers, world);
}

std::optional<std::vector<int>> Worlds::place(std::span<const int> slots) const {
  if (std::ssize(slots) < least_hosts_) return {};
  int left = std::accumulate(slots.begin(), slots.end(), 0);
  while (left > 0 && !admits(left)) --left;
  if (left <= 0) return {};
  std::vector<int> ranks;
  for (const int here : slots) {
    const int still_needed = least_hosts_ - static_cast<int>(ranks.size()) - 1;
    ranks.push_back(std::min(here, left - std::max(still_needed, 0)));
    left -= ranks.back();
  }
  return ranks;
}

std::string Worlds::describe() const {
  if (!are_said_) return fmt::format("at least {} ranks", least());
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
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  for (bool has_more = !text.empty(); has_more;) {
    const std::size_t space = text.find(' ');
    const auto number = parse_integer(text.substr(0, space));
    if (!number || *number < 1 || *number > kMost) return {};
    said.numbers.push_back(static_cast<int>(*number));
    has_more = space != std::string_view::npos;
    if (has_more) text.remove_prefix(space + 1);
  }
  return said;
}

}  // namespace strata::launcher

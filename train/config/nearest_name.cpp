#include "train/config/nearest_name.h"

#include <algorithm>
#include <cctype>

namespace strata::train {
namespace {

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> before(columns), last(columns), now(columns);
  for (std::size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < columns; ++j) {
      const bool same = a[i - 1] == b[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  // A key of a hostile file may be a megabyte long; nobody meant a known name by it.
  constexpr std::size_t kLongestName = 100;
  const std::string wanted = folded(name);
  if (wanted.empty() || wanted.size() > kLongestName) return "";
  std::string_view best;
  int best_distance = 1000;
  for (const std::string_view candidate : candidates) {
    const std::string other = folded(candidate);
    const bool begins = wanted.size() >= 4 && other.size() >= 4 &&
                        (other.starts_with(wanted) || wanted.starts_with(other));
    const int distance = begins ? 2 : edit_distance(wanted, other);
    const int limit = std::max(1, static_cast<int>(std::max(wanted.size(), other.size())) / 3);
    if ((begins || distance <= limit) && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  const std::string near = nearest_name(name, candidates);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

}  // namespace strata::train

#include "runtime/schedule/held_times.h"

#include <algorithm>

namespace strata::runtime {

std::vector<HeldTimes> number_times(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::int64_t> times;
  for (const Lifetime& l : lifetimes) times.insert(times.end(), {l.begin, l.end});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto number = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::lower_bound(times.begin(), times.end(), time) -
                                     times.begin());
  };
  std::vector<HeldTimes> numbered;
  for (const Lifetime& l : lifetimes) numbered.push_back({number(l.begin), number(l.end)});
  return numbered;
}

}  // namespace strata::runtime

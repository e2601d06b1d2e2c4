#include "runtime/schedule/schedule_rates.h"

#include <algorithm>
#include <cstddef>

namespace strata::runtime {
namespace {

/// Rounds down, so that shares that add up to 1 as real numbers do not slow one another down.
std::int64_t in_parts(double share) {
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(share * static_cast<double>(kFullRate)));
}

}  // namespace

std::vector<std::int64_t> fair_rates(const std::vector<const ScheduleTask*>& running,
                                     int resources) {
  std::vector<std::int64_t> rates(running.size(), 0);  // 0: rate still rising
  std::vector<std::int64_t> left(static_cast<std::size_t>(resources), kFullRate);
  for (;;) {
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(resources), 0);
    for (std::size_t i = 0; i < running.size(); ++i)
      if (rates[i] == 0)
        for (const ResourceShare& s : running[i]->shares) wanted[s.resource] += in_parts(s.share);
    const auto full_at = [&](int r) {
      return wanted[r] == 0 ? kFullRate
                            : std::max<std::int64_t>(1, left[r] * kFullRate / wanted[r]);
    };
    std::int64_t level = kFullRate;
    for (int r = 0; r < resources; ++r) level = std::min(level, full_at(r));
    if (level == kFullRate) break;
    const auto is_full = [&](const ResourceShare& s) { return full_at(s.resource) == level; };
    std::vector<std::size_t> stay;
    for (std::size_t i = 0; i < running.size(); ++i)
      if (rates[i] == 0 &&
          std::any_of(running[i]->shares.begin(), running[i]->shares.end(), is_full))
        stay.push_back(i);
    for (std::size_t i : stay) {
      rates[i] = level;
      for (const ResourceShare& s : running[i]->shares)
        left[s.resource] =
            std::max<std::int64_t>(0, left[s.resource] - level * in_parts(s.share) / kFullRate);
    }
  }
  for (std::int64_t& rate : rates)
    if (rate == 0) rate = kFullRate;
  return rates;
}

}  // namespace strata::runtime

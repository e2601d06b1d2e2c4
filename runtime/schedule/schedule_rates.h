// How fast tasks run side by side on shared cores, memory, links and disks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Rates are whole multiples of 1 / kFullRate, so that every machine finds the same ones.
constexpr int kRateBits = 20;
constexpr std::int64_t kFullRate = std::int64_t{1} << kRateBits;

/// Max-min fair: all rates rise together; those that share a resource stay where it is full, the
/// others rise on, up to the rate of a task alone. One rate per task, in (0, kFullRate].
std::vector<std::int64_t> fair_rates(const std::vector<const ScheduleTask*>& running,
                                     int resources);

}  // namespace strata::runtime

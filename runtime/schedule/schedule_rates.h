// Computes how fast tasks run side by side on shared cores, memory, links and disks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Rates are whole multiples of 1 / kFullRate, so that every machine computes the same ones.
constexpr int kRateBits = 20;
constexpr std::int64_t kFullRate = std::int64_t{1} << kRateBits;

/// Returns max-min fair rates, one per task, in (0, kFullRate]: all rates rise together; tasks that
/// share a resource stop where it is full, the others rise on, up to the rate of a task alone.
std::vector<std::int64_t> fair_rates(const std::vector<const ScheduleTask*>& running,
                                     int resources);

}  // namespace strata::runtime

// Which budgets are tried, and which schedule is kept.
#pragma once

#include <vector>

#include "runtime/schedule/schedule_index.h"
#include "runtime/schedule/schedule_places.h"

namespace strata::runtime {

/// The fastest schedule over budgets of floor * 2^(i/4) in tiers with a ladder, up to the budgets
/// of the problem; the floors are those of the last of `serial`. On every rung each of `serial`
/// that fits gives an order of requests. One must fit the problem's budgets.
Schedule climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial);

}  // namespace strata::runtime

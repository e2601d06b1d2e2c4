// Tries budgets, and keeps the fastest schedule.
#pragma once

#include <vector>

#include "runtime/schedule/schedule_index.h"
#include "runtime/schedule/schedule_places.h"

namespace strata::runtime {

/// Returns the fastest schedule over budgets on the rungs of tiers with a ladder, up to the budgets
/// of the problem; the floors are those of the last of `serial`. On every rung each of `serial`
/// that fits gives an order of requests. At least one must fit the problem's budgets.
Schedule climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial);

}  // namespace strata::runtime

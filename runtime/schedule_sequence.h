// Serial orders: what a step would be if one task ran after another.
#pragma once

#include <vector>

#include "runtime/schedule_index.h"

namespace strata::runtime {

/// All tasks, `work` (every work task, in an order that respects what they need) each behind the
/// transfers into it that are still missing, and every `out` directly behind the last task that it
/// needs. Ordered tasks keep the order of the list. An `in` that no work needs stands at the end.
std::vector<int> serial_sequence(const ScheduleIndex& index, const std::vector<int>& work);

}  // namespace strata::runtime

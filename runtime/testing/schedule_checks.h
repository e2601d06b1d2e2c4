// Checks schedules with no code of the scheduler.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Describes what is wrong with the schedule: needs, queues, order, budgets at every time, places
/// in time and in list positions. Empty if nothing is.
std::vector<std::string> faults(const ScheduleProblem& problem, const Schedule& schedule);

}  // namespace strata::runtime

// A judge of schedules that shares no code with the scheduler.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// What is wrong with the schedule, in words: needs, queues, order, budgets at every time, places
/// in time and in list positions. Empty: nothing.
std::vector<std::string> faults(const ScheduleProblem& problem, const Schedule& schedule);

}  // namespace strata::runtime

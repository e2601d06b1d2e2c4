// A schedule as an executor runs it: other times than those simulated, the same waits.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// What an executor knows of a schedule: the list, and per task what it waits for beside its
/// queue's order: needs, and earlier users of the same bytes.
std::vector<std::vector<int>> list_waits(const ScheduleProblem& problem, const Schedule& schedule);

/// Ends of all tasks (-1: not run, or never reached) when queues run the list in order with the
/// waits alone and task t takes `cost_ns[t]`.
std::vector<std::int64_t> replay(const ScheduleProblem& problem, const Schedule& schedule,
                                 const std::vector<std::vector<int>>& waits,
                                 const std::vector<std::int64_t>& cost_ns);

}  // namespace strata::runtime

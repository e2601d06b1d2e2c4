// Runs a schedule as an executor does: with other times than those simulated, but the same waits.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Returns, by task, all that an executor makes it wait for in addition to its queue's order:
/// needs, and earlier users of the same bytes.
std::vector<std::vector<int>> list_waits(const ScheduleProblem& problem, const Schedule& schedule);

/// Returns the ends of all tasks (-1: not run, or never reached) if queues run the list in order
/// with these waits alone and task t takes `cost_ns[t]`.
std::vector<std::int64_t> replay(const ScheduleProblem& problem, const Schedule& schedule,
                                 const std::vector<std::vector<int>>& waits,
                                 const std::vector<std::int64_t>& cost_ns);

}  // namespace strata::runtime

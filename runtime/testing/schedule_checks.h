// Judges of schedules that share no code with the scheduler, and problems to try it on.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/schedule.h"

namespace strata::runtime {

/// What is wrong with the schedule, in words: needs, queues, order, budgets at every time, places
/// in time and in list positions. Empty: nothing.
std::vector<std::string> faults(const ScheduleProblem& problem, const Schedule& schedule);

/// Per buffer the first copy in the same memory.
std::vector<int> shared_roots(const ScheduleProblem& problem, const Schedule& schedule);

/// What an executor knows of a schedule: the list, and per task what it waits for beside its
/// queue's order: needs, and earlier users of the same bytes.
std::vector<std::vector<int>> list_waits(const ScheduleProblem& problem, const Schedule& schedule);

/// Ends of all tasks (-1: not run, or never reached) when queues run the list in order with the
/// waits alone and task t takes `cost_ns[t]`.
std::vector<std::int64_t> replay(const ScheduleProblem& problem, const Schedule& schedule,
                                 const std::vector<std::vector<int>>& waits,
                                 const std::vector<std::int64_t>& cost_ns);

struct RandomProblemSize {
  int work = 6;          ///< work tasks
  bool shares = true;    ///< resources that slow tasks down
  bool gaps = true;      ///< values used several times
  bool ordered = true;   ///< some transfers keep their order on all ranks
  bool soft = true;      ///< a soft tier over some transfers
  bool windows = false;  ///< some filled in the run before, and again for the next one
};

/// Work on two queues, values brought over one or two hops and kept for several uses, results taken
/// away. Budgets are unlimited.
ScheduleProblem random_problem(std::mt19937_64& random, const RandomProblemSize& size);

}  // namespace strata::runtime

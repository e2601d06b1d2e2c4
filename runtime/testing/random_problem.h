// Makes random problems for tests of the scheduler.
#pragma once

#include <random>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

struct RandomProblemSize {
  int work = 6;          ///< work tasks
  bool shares = true;    ///< resources that slow tasks down
  bool gaps = true;      ///< values used several times
  bool ordered = true;   ///< some transfers keep their order on all ranks
  bool soft = true;      ///< a soft tier over some transfers
  bool windows = false;  ///< some buffers are filled in the run before, and again for the next
};

/// Makes work on two queues, values brought over one or two hops and kept for several uses, and
/// results taken away. Budgets are unlimited.
ScheduleProblem random_problem(std::mt19937_64& random, const RandomProblemSize& size);

}  // namespace strata::runtime

// Tells which buffers hold memory in a schedule, and when, for the checks of schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Returns, by buffer, its root: the first copy in the same memory.
std::vector<int> shared_roots(const ScheduleProblem& problem, const Schedule& schedule);

/// The memory of a root: the tasks that use it, when, and where in the list and in its tier.
struct RootLife {
  int root = 0, tier = 0;
  std::vector<int> users;
  std::int64_t begin = 0, end = 0;  // bytes
  std::int64_t from_ns = 0, to_ns = 0;
  int first = 0, last = 0;  // list positions
  bool filled_before = false, kept = false;
  std::int64_t place = kAnyPlace;
};

/// Returns the lives of all roots that some task uses.
std::vector<RootLife> root_lives(const ScheduleProblem& problem, const Schedule& schedule);

}  // namespace strata::runtime

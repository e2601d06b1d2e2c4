// Who holds memory in a schedule, and from when to when: what its judges look at.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Per buffer the first copy in the same memory: its root.
std::vector<int> shared_roots(const ScheduleProblem& problem, const Schedule& schedule);

/// Memory of a root: tasks that use it, when, where in the list and in its tier.
struct RootLife {
  int root = 0, tier = 0;
  std::vector<int> users;
  std::int64_t begin = 0, end = 0;  // bytes
  std::int64_t from_ns = 0, to_ns = 0;
  int first = 0, last = 0;  // list positions
  bool filled_before = false, kept = false;
  std::int64_t place = kAnyPlace;
};

/// Of all roots that some task uses.
std::vector<RootLife> root_lives(const ScheduleProblem& problem, const Schedule& schedule);

}  // namespace strata::runtime

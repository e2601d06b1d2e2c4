// Finds the best schedule by trying all orders of starts, for small problems without shared
// resources.
#pragma once

#include <cstdint>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

struct SearchResult {
  std::int64_t makespan_ns = 0;
  bool complete = false;  ///< every order was tried or ruled out
};

/// Returns the least makespan of legal schedules (needs, queues, order of ordered tasks, bytes held
/// at one time; not places), at most `known_ns`. Gives up after `most_nodes` partial orders.
SearchResult search_all(const ScheduleProblem& problem, std::int64_t known_ns,
                        std::int64_t most_nodes);

}  // namespace strata::runtime

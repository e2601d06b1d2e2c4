// Simulates the tasks of one step under a memory budget.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule_index.h"

namespace strata::runtime {

struct SimulatedRun {
  std::vector<std::int64_t> start_ns, end_ns;  ///< one per task; -1: not run
  std::vector<bool> survives;                  ///< one per gap
  std::int64_t makespan_ns = 0;
  /// A request waited, or a copy was given up, in a tier with a ladder: more memory could matter.
  bool tight = false;
};

/// Simulates with unlimited memory: each queue takes the ready task with the longest tail (the
/// least latest start), then with the least number; every transfer runs.
SimulatedRun simulate_unlimited(const ScheduleIndex& index,
                                const std::vector<std::int64_t>& tail_ns);

/// Simulates likewise under `budget_bytes` by tier, each at least the most that `sequence`, a
/// serial order, holds. Memory is granted in the sequence's order.
SimulatedRun simulate(const ScheduleIndex& index, const std::vector<std::int64_t>& tail_ns,
                      const std::vector<int>& sequence,
                      const std::vector<std::int64_t>& budget_bytes);

}  // namespace strata::runtime

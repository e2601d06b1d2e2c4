// What happens when under a memory budget: the simulation of one step's tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule_index.h"

namespace strata::runtime {

struct SimulatedRun {
  std::vector<std::int64_t> start_ns, end_ns;  ///< per task; -1: not run
  std::vector<bool> survives;                  ///< per gap
  std::int64_t makespan_ns = 0;
  /// A request waited, or a copy was given up, in a tier with a ladder: more memory could matter.
  bool tight = false;
};

/// Each queue takes the ready task of the longest tail (least latest start), then of the least
/// number, whatever the memory; every transfer runs.
SimulatedRun simulate_unlimited(const ScheduleIndex& index,
                                const std::vector<std::int64_t>& tail_ns);

/// The same under `budget_bytes` per tier, each at least what `sequence`, a serial order, holds at
/// most. Memory is granted in the sequence's order.
SimulatedRun simulate(const ScheduleIndex& index, const std::vector<std::int64_t>& tail_ns,
                      const std::vector<int>& sequence,
                      const std::vector<std::int64_t>& budget_bytes);

}  // namespace strata::runtime

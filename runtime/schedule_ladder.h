// From simulations to the schedule that is kept: floors, places, and which budgets are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule_index.h"

namespace strata::runtime {

/// A serial order of all tasks, run one after another.
struct SerialRun {
  std::vector<int> sequence;
  Schedule schedule;                    ///< not laid out: no arenas
  std::vector<std::int64_t> most_held;  ///< per tier, bytes: what a simulation needs at least
};

SerialRun run_serially(const ScheduleIndex& index, std::vector<int> sequence);

/// Places its buffers; the arenas are its floors.
void lay_out_serially(const ScheduleIndex& index, SerialRun& serial);

/// Whether each arena is within its budget; soft tiers always are. False for what is not laid out.
bool fits(const ScheduleIndex& index, const Schedule& schedule,
          const std::vector<std::int64_t>& budget_bytes);

/// The fastest schedule over budgets of floor * 2^(i/4) in tiers with a ladder, up to the budgets
/// of the problem; the floors are those of the last of `serial`. On every rung each of `serial`
/// that fits gives an order of requests. One must fit the problem's budgets.
Schedule climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial);

}  // namespace strata::runtime

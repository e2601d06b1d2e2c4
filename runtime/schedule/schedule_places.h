// From simulated times to schedules: the list, and a place for every buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"
#include "runtime/schedule/schedule_index.h"
#include "runtime/schedule/schedule_simulation.h"

namespace strata::runtime {

/// The list of a run: tasks by start, then by number.
Schedule without_places(const ScheduleIndex& index, SimulatedRun run);

/// Finds places for schedules of one problem, and remembers them: less memory in one tier often
/// leaves the others as they were.
class Layouts {
 public:
  explicit Layouts(const ScheduleIndex& index)
      : index_(index), known_(index.problem.tiers.size()) {}

  /// Fills offsets and arenas; those of soft tiers are what is held at most. Stops looking for a
  /// smaller arena at `enough_bytes`, per tier. Returns what is held at most, per tier.
  std::vector<std::int64_t> lay_out(const std::vector<std::int64_t>& enough_bytes,
                                    Schedule& schedule);

 private:
  /// Keeps what one search found that would have ended at `enough_bytes`.
  struct Known {
    std::vector<Lifetime> wanted;
    std::vector<std::int64_t> offset_bytes;
    std::int64_t enough_bytes, arena_bytes;
  };

  std::int64_t place(int tier, std::vector<Lifetime>& lifetimes, std::int64_t enough_bytes);

  const ScheduleIndex& index_;
  std::vector<std::vector<Known>> known_;  ///< per tier
};

/// Looks longer for places of the schedule that is kept, where its arenas are loose.
void tighten(const ScheduleIndex& index, Schedule& schedule);

/// A serial order of all tasks.
struct SerialRun {
  std::vector<int> sequence;
  std::vector<std::int64_t> tail_ns;    ///< who starts first in simulations
  std::vector<std::int64_t> most_held;  ///< per tier, bytes: what a simulation needs at least
  /// When laid out: queues side by side, as far as needs and the places of the serial run allow.
  Schedule schedule;
};

SerialRun run_serially(const ScheduleIndex& index, std::vector<int> sequence,
                       std::vector<std::int64_t> tail_ns);

/// With the index's tails, laid out: the schedule's arenas are the floors of this order.
SerialRun run_in_places(const ScheduleIndex& index, std::vector<int> sequence);

/// Whether each arena is within its budget; soft tiers always are. False for what is not laid out.
bool fits(const ScheduleIndex& index, const Schedule& schedule,
          const std::vector<std::int64_t>& budget_bytes);

}  // namespace strata::runtime

// Makes schedules from simulated times: the list, and a place for every buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"
#include "runtime/schedule/schedule_index.h"
#include "runtime/schedule/schedule_simulation.h"

namespace strata::runtime {

/// Makes the list of a run: tasks by start, then by number. Sets no places.
Schedule without_places(const ScheduleIndex& index, SimulatedRun run);

/// Finds places for schedules of one problem, and remembers them: less memory in one tier often
/// leaves the others as they were.
class Layouts {
 public:
  explicit Layouts(const ScheduleIndex& index)
      : index_(index), known_(index.problem.tiers.size()) {}

  /// Fills offsets and arenas; those of soft tiers are the most that is held. Stops looking for a
  /// smaller arena at `enough_bytes`, by tier. Returns the most that is held, by tier.
  std::vector<std::int64_t> lay_out(const std::vector<std::int64_t>& enough_bytes,
                                    Schedule& schedule);

 private:
  /// The result of one search, which would have ended at `enough_bytes`.
  struct Known {
    std::vector<Lifetime> lifetimes;  ///< times in order, so that equal overlaps are equal
    std::vector<int> roots;           ///< their buffers, ascending
    std::vector<std::int64_t> offset_bytes;
    std::int64_t most_held, enough_bytes, arena_bytes;
  };

  /// True if the search for `known` would have gone on with `enough_bytes`.
  static bool ended_early(const Known& known, std::int64_t enough_bytes);
  /// Takes the places of the last problem that held as much, and finds new ones for what they do
  /// not suit: the next rung often differs in a copy that survives, and in little else. Returns
  /// nothing if that needs a larger arena.
  [[nodiscard]] std::optional<std::int64_t> place_like_known(
      int tier, const Known& wanted, std::vector<Lifetime>& lifetimes) const;
  std::int64_t place(int tier, const std::vector<int>& roots, std::int64_t most_held,
                     std::int64_t enough_bytes, std::vector<Lifetime>& lifetimes);

  const ScheduleIndex& index_;
  std::vector<std::vector<Known>> known_;  ///< one list per tier
};

/// Searches longer for places of the schedule that is kept, if its arenas are loose.
void tighten(const ScheduleIndex& index, Schedule& schedule);

/// A serial order of all tasks.
struct SerialRun {
  std::vector<int> sequence;
  std::vector<std::int64_t> tail_ns;    ///< one per task: priority in simulations
  std::vector<std::int64_t> most_held;  ///< one per tier: the least bytes that a simulation needs
  /// The schedule of what is laid out: queues run side by side, as far as needs and the places of
  /// the serial run allow.
  Schedule schedule;
};

SerialRun run_serially(const ScheduleIndex& index, std::vector<int> sequence,
                       std::vector<std::int64_t> tail_ns);

/// Uses the index's tails and lays out: the schedule's arenas are the floors of this order.
SerialRun run_in_places(const ScheduleIndex& index, std::vector<int> sequence);

/// True if each arena is within its budget; soft tiers always are. False if it is not laid out.
bool fits(const ScheduleIndex& index, const Schedule& schedule,
          const std::vector<std::int64_t>& budget_bytes);

}  // namespace strata::runtime

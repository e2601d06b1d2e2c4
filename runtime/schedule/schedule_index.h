// Holds what every simulation of a ScheduleProblem looks up: successors, users, latest starts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

constexpr int kNoGap = -1;

/// Exceeds any time in ns and any size in bytes.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// Borrows the problem, which must outlive it.
struct ScheduleIndex {
  /// Checks the problem; a broken one is a mistake of the caller, not of a user.
  explicit ScheduleIndex(const ScheduleProblem& problem);

  std::int64_t held_bytes(int buffer) const;  ///< size in its tier: aligned
  int tasks() const { return static_cast<int>(problem.tasks.size()); }
  int buffers() const { return static_cast<int>(problem.buffers.size()); }
  int tiers() const { return static_cast<int>(problem.tiers.size()); }

  const ScheduleProblem& problem;
  /// Tasks to wait for, ascending: `after`, and for a gap's `ins` also those that fill the earlier
  /// copy, so that users of a survivor wait for these.
  std::vector<std::vector<int>> needs;
  std::vector<std::vector<int>> needed_by;
  /// Tasks that come before a task in every serial order: its needs, and for a gap's `ins` all
  /// users of the earlier copy.
  std::vector<std::vector<int>> earlier;
  std::vector<std::vector<int>> buffers_of;  ///< one list per task, ascending
  std::vector<int> gap_after, gap_before;    ///< one per buffer: the gap it begins, the one it ends
  std::vector<int> gap_of;                   ///< one per task: the gap that has it among its `ins`
  std::vector<int> ordered;                  ///< the tasks with this flag
  /// The longest path from each task's start to the end. A longer one is an earlier latest start.
  std::vector<std::int64_t> tail_ns;

 private:
  void check_tasks() const;
  void check_buffers() const;
  void index_gaps();
  void link();
  void find_tails();
};

}  // namespace strata::runtime

// What every simulation of one ScheduleProblem looks up: successors, users, latest starts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

constexpr int kNoGap = -1;

/// More than any time, ns, or size, bytes.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// Borrows the problem, which must outlive it.
struct ScheduleIndex {
  /// Checks the problem: a broken one is a mistake of the caller, not of a user.
  explicit ScheduleIndex(const ScheduleProblem& problem);

  std::int64_t held_bytes(int buffer) const;  ///< as its tier counts them: aligned
  int tasks() const { return static_cast<int>(problem.tasks.size()); }
  int buffers() const { return static_cast<int>(problem.buffers.size()); }
  int tiers() const { return static_cast<int>(problem.tiers.size()); }

  const ScheduleProblem& problem;
  /// Per task, ascending: `after`, and of a gap's `ins` what fills the earlier copy, so that who
  /// uses the survivor of a cancelled transfer waits for it.
  std::vector<std::vector<int>> needs;
  std::vector<std::vector<int>> needed_by;
  /// What stands before a task in every serial order: its needs, and of a gap's `ins` all users of
  /// the earlier copy.
  std::vector<std::vector<int>> stands_behind;
  std::vector<std::vector<int>> buffers_of;  ///< per task, ascending
  std::vector<int> gap_behind, gap_before;   ///< per buffer: the gap it begins, the one it ends
  std::vector<int> gap_of;                   ///< per task: the gap whose `ins` it is one of
  std::vector<int> ordered;                  ///< the tasks with this flag
  /// Per task: the longest path from its start to the end. A larger one is an earlier latest start.
  std::vector<std::int64_t> tail_ns;

 private:
  void check_tasks() const;
  void check_buffers() const;
  void index_gaps();
  void link();
  void find_tails();
};

}  // namespace strata::runtime

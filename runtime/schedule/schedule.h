// When transfers run: the order of instructions and the places of buffers under a memory budget per
// tier, by simulating the machine. One algorithm for parameter prefetch, gathers, reductions,
// activation offload and swapped optimizer work. Pure: knows tasks, queues and bytes, nothing of
// graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::runtime {

/// Part of a resource (cores, a memory, a link, a disk) that a task uses while it runs alone, in
/// (0, 1]. Tasks whose shares add up to more than 1 slow one another down, max-min fair.
struct ResourceShare {
  int resource = 0;
  double share = 1;
};

/// What a task is to the schedule.
enum class TaskKind : std::uint8_t {
  work,  ///< computation and updates: the backbone, whose order everything else follows
  in,    ///< brings a value to where work needs it: its buffers are asked for at that work's place
  out,   ///< takes a result away: its buffers are asked for at the producer's place
};

struct ScheduleTask {
  TaskKind kind = TaskKind::work;
  int queue = 0;             ///< FIFO: tasks of one queue run one after another
  std::int64_t cost_ns = 0;  ///< alone on the machine, > 0
  std::vector<ResourceShare> shares;
  std::vector<int> after;  ///< earlier tasks (of the list) that must have ended
  /// Starts in the order of the list among all tasks with this flag, whatever the memory: ranks
  /// must agree on the order of their collectives. So the list says how far ahead a gather may
  /// stand before a reduction.
  bool ordered = false;
};

constexpr std::int64_t kAnyPlace = -1;

/// Memory that lives from the start of the first task that touches it to the end of the last.
struct ScheduleBuffer {
  int tier = 0;
  std::int64_t bytes = 0;
  std::vector<int> users;  ///< tasks, ascending; the first one fills it
  // What passes between two runs; not the copies of a gap.
  bool filled_before = false;            ///< lives from the start of the run
  bool kept = false;                     ///< lives until the end of the run
  std::int64_t place_bytes = kAnyPlace;  ///< where it must lie; a multiple of the alignment
};

/// A clean copy of a value may stay for its next use instead of being brought again. All users of
/// `before` stand before all `ins` in the list; the copy is idle, and may be given up, from the end
/// of its last user (an `out` that takes it home is one). Users of a survivor wait for what fills
/// `before` (its first user and every `in`) and for all that the cancelled `ins` would have waited
/// for.
struct ScheduleGap {
  int before = 0;  ///< buffer of the earlier copy
  int after = 0;   ///< buffer of the later copy: the same tier and bytes
  /// Tasks that bring the later copy, over any number of hops; not run when the earlier one
  /// survives. Each belongs to one gap, and their other buffers (windows) to none.
  std::vector<int> ins;
};

struct ScheduleTier {
  std::string name;
  std::int64_t budget_bytes = 0;
  std::int64_t alignment = 64;  ///< of places
  /// A limit on what is brought early, not on memory: raised to the floor instead of refused, and
  /// not laid out. Its buffers count from the start of their first user to the end of their last.
  bool soft = false;
  /// Less than the whole budget is tried too, in steps from the floor, and the fastest schedule
  /// kept: more memory in this tier alone never makes it slower. For the device.
  bool ladder = false;
};

struct ScheduleProblem {
  int queues = 1;
  int resources = 0;
  std::vector<ScheduleTask> tasks;  ///< run in this order, one after another, they are correct
  std::vector<ScheduleBuffer> buffers;
  std::vector<ScheduleGap> gaps;
  std::vector<ScheduleTier> tiers;
};

struct Schedule {
  /// All tasks that run, by start, then by number: after all that they wait for, be it data, queue
  /// or memory.
  std::vector<int> order;
  std::vector<std::int64_t> start_ns, end_ns;  ///< of every task as simulated; -1: not run
  std::vector<bool> survives;                  ///< per gap: the earlier copy stays
  /// Per buffer (of a surviving gap both the same). Buffers with common bytes are used one after
  /// the other, in time and in the list. 0 where no user runs, in soft tiers and for no bytes.
  std::vector<std::int64_t> offset_bytes;
  std::vector<std::int64_t> arena_bytes;  ///< per tier; of soft ones what is held at most
  std::vector<std::int64_t> floor_bytes;  ///< per tier: the smallest budget of this problem
  std::int64_t makespan_ns = 0;
  /// The first tier whose floor is larger than its budget: there is no schedule, and of all this
  /// only floor_bytes are set.
  std::optional<int> short_tier;
};

/// The same problem gives the same schedule, to the byte, on every machine.
Schedule make_schedule(const ScheduleProblem& problem);

}  // namespace strata::runtime

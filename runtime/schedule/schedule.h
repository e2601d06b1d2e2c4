// Decides when transfers run: finds the order of instructions and the places of buffers under a
// memory budget per tier, by simulating the machine. One algorithm serves parameter prefetch,
// gathers, reductions, activation offload and swapped optimizer work. It is pure, and knows tasks,
// queues and bytes, but no Graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::runtime {

/// The part of a resource (cores, a memory, a link, a disk) that a task uses while it runs alone,
/// in (0, 1]. Tasks whose shares add up to more than 1 slow one another down, max-min fair.
struct ResourceShare {
  int resource = 0;
  double share = 1;
};

/// The role of a task in the schedule.
enum class TaskKind : std::uint8_t {
  work,  ///< computation and updates: the backbone, whose order everything else follows
  in,    ///< brings a value to work that needs it: its buffers are requested at that work's place
  out,   ///< takes a result away: its buffers are requested at its producer's place
};

struct ScheduleTask {
  TaskKind kind = TaskKind::work;
  int queue = 0;             ///< FIFO: tasks of one queue run one after another
  std::int64_t cost_ns = 0;  ///< duration alone on the machine, > 0
  std::vector<ResourceShare> shares;
  std::vector<int> after;  ///< earlier tasks in the list that must have ended
  /// True: starts in list order among all tasks with this flag, whatever the memory, since ranks
  /// must agree on the order of their collectives. So the list decides how far ahead of a reduction
  /// a gather may be.
  bool ordered = false;
};

constexpr std::int64_t kAnyPlace = -1;

/// Memory that is in use from the start of the first task that touches it to the end of the last.
struct ScheduleBuffer {
  int tier = 0;
  std::int64_t bytes = 0;
  std::vector<int> users;  ///< tasks, ascending; the first one fills it
  // The fields below are for memory that passes between two runs, not for the copies of a gap.
  bool filled_before = false;            ///< in use from the start of the run
  bool kept = false;                     ///< in use until the end of the run
  std::int64_t place_bytes = kAnyPlace;  ///< a fixed place; a multiple of the alignment
};

/// A clean copy of a value that may stay for the value's next use, instead of being brought again.
/// All users of `before` come before all `ins` in the list. The copy is idle, and may be given up,
/// from the end of its last user (an `out` that takes it home is one). Users of a survivor wait for
/// the tasks that fill `before` (its first user and every `in`) and for all that the cancelled
/// `ins` would have waited for.
struct ScheduleGap {
  int before = 0;  ///< buffer of the earlier copy
  int after = 0;   ///< buffer of the later copy, of the same tier and bytes
  /// Tasks that bring the later copy, over any number of hops; they do not run if the earlier copy
  /// survives. Each belongs to one gap, and their other buffers (windows) belong to none.
  std::vector<int> ins;
};

struct ScheduleTier {
  std::string name;
  std::int64_t budget_bytes = 0;
  std::int64_t alignment = 64;  ///< alignment of places
  /// True: limits what is brought early, not memory. Raised to the floor instead of refused, and
  /// not laid out. Its buffers count from the start of their first user to the end of their last.
  bool soft = false;
  /// True: budgets from the floor up to the whole one are tried in steps, and the fastest schedule
  /// is kept, so that more memory in this tier alone hardly ever makes it slower. Meant for the
  /// device.
  bool ladder = false;
};

/// How long places of buffers are looked for. A rough schedule is as fast as a full one or a little
/// slower, and its arenas may be looser: enough to compare it with others.
enum class ScheduleEffort : std::uint8_t { full, rough };

struct ScheduleProblem {
  ScheduleEffort effort = ScheduleEffort::full;
  int queues = 1;
  int resources = 0;
  std::vector<ScheduleTask> tasks;  ///< correct if run in this order, one after another
  std::vector<ScheduleBuffer> buffers;
  std::vector<ScheduleGap> gaps;
  std::vector<ScheduleTier> tiers;
};

struct Schedule {
  /// All tasks that run, by start, then by number. Each comes after all that it waits for, be it
  /// data, queue or memory.
  std::vector<int> order;
  std::vector<std::int64_t> start_ns, end_ns;  ///< one per task, as simulated; -1: not run
  std::vector<bool> survives;                  ///< one per gap: true if the earlier copy stays
  /// Places of buffers; both copies of a surviving gap have the same. Buffers with common bytes are
  /// used in turn, in time and in the list. 0 in soft tiers, for no bytes, and if no user runs.
  std::vector<std::int64_t> offset_bytes;
  std::vector<std::int64_t> arena_bytes;  ///< one per tier; for soft ones the most that is held
  std::vector<std::int64_t> floor_bytes;  ///< one per tier: the smallest budget of this problem
  std::int64_t makespan_ns = 0;
  /// The first tier whose floor is larger than its budget. If set, there is no schedule, and only
  /// floor_bytes is set as well.
  std::optional<int> short_tier;
};

/// Makes a schedule. The same problem gives the same schedule, to the byte, on every machine.
Schedule make_schedule(const ScheduleProblem& problem);

}  // namespace strata::runtime

#include "runtime/schedule/schedule_simulation.h"

#include <algorithm>
#include <queue>
#include <set>
#include <utility>

#include "core/check.h"
#include "runtime/schedule/schedule_rates.h"

// Proof that the simulation never stops early (checked in resume()): Let h be the earliest task of
// the sequence that has not ended, when nothing runs. All that h needs comes before it and has
// ended; ordered tasks before it have started; its queue is free. So h waits for memory or for a
// gap.
//  - Memory: each tier grants in the sequence's order. So all that the tier of h's first
//    ungranted buffer has granted belongs to tasks before h, or to buffers that are first used
//    before that one. All of it that the serial run would have released at this place is released
//    or reclaimable, since every task before h has ended. The serial run holds the rest at the same
//    place, together with the requested buffer, and the budget is at least the most that the
//    serial run holds. So the buffer is granted. (Buffers filled before the run are requested
//    first, and the serial run holds them from the start, too; both hold kept ones to the end.)
//  - A gap, whose transfers are kept back while the earlier copy may still survive: all users of
//    the earlier copy come before h, so the copy is clean and idle. It is given up, and h starts.

namespace strata::runtime {
namespace {

/// The outcome of a gap.
enum class Fate : std::uint8_t { open, survives, brought };

class Simulation {
 public:
  Simulation(const ScheduleIndex& index, const std::vector<std::int64_t>& tail_ns,
             const std::vector<int>* sequence, const std::vector<std::int64_t>* budget_bytes)
      : index_(index),
        problem_(index.problem),
        tail_ns_(tail_ns),
        limited_(sequence != nullptr),
        needs_left_(problem_.tasks.size()),
        blocks_left_(problem_.tasks.size(), 0),
        cancelled_(problem_.tasks.size(), false),
        ended_(problem_.tasks.size(), false),
        fates_(problem_.gaps.size(), Fate::open),
        ready_(static_cast<std::size_t>(problem_.queues)),
        running_(static_cast<std::size_t>(problem_.queues)) {
    run_.start_ns.assign(problem_.tasks.size(), -1);
    run_.end_ns.assign(problem_.tasks.size(), -1);
    run_.survives.assign(problem_.gaps.size(), false);
    for (int t = 0; t < index_.tasks(); ++t)
      needs_left_[t] = static_cast<int>(index_.needs[t].size());
    for (std::size_t i = 1; i < index_.ordered.size(); ++i) ++blocks_left_[index_.ordered[i]];
    if (limited_) ask_for_memory(*sequence, *budget_bytes);
  }

  SimulatedRun run() {
    for (int t = 0; t < index_.tasks(); ++t) make_ready(t);
    settle();
    while (unfinished()) {
      if (running_count_ > 0) {
        advance();
      } else {
        resume();
      }
      settle();
    }
    run_.makespan_ns = now_;
    for (std::size_t g = 0; g < fates_.size(); ++g) run_.survives[g] = fates_[g] == Fate::survives;
    return std::move(run_);
  }

 private:
  // The memory of one tier: what is granted, and which idle copies may be given up.
  struct TierMemory {
    std::int64_t budget = 0, used = 0, reclaimable = 0;
    std::vector<int> requests;  // buffers in the order of the sequence
    std::size_t next = 0;
    std::set<std::pair<int, int>> idle;  // place of the next use, root
  };

  struct Running {
    int task = -1;
    std::int64_t left = 0;  // parts of 1 / kFullRate ns of the task alone
    std::int64_t rate = 0;
  };

  // The task with the longest path to the end, which is the least latest start, comes first.
  using Ready = std::priority_queue<std::pair<std::int64_t, int>>;

  void ask_for_memory(const std::vector<int>& sequence,
                      const std::vector<std::int64_t>& budget_bytes) {
    sequence_ = &sequence;
    std::vector<int> place(problem_.tasks.size());
    for (std::size_t i = 0; i < sequence.size(); ++i) place[sequence[i]] = static_cast<int>(i);
    place_.assign(problem_.buffers.size(), 0);
    memory_.resize(problem_.tiers.size());
    for (std::size_t t = 0; t < memory_.size(); ++t) memory_[t].budget = budget_bytes[t];
    for (int b = 0; b < index_.buffers(); ++b) {
      const ScheduleBuffer& buffer = problem_.buffers[b];
      place_[b] = place[buffer.users.front()];
      for (int user : buffer.users) {
        place_[b] = std::min(place_[b], place[user]);
        ++blocks_left_[user];
      }
      if (buffer.filled_before) place_[b] = -1;
      memory_[buffer.tier].requests.push_back(b);
      // A kept buffer has one more user, which never ends.
      users_left_.push_back(static_cast<int>(buffer.users.size()) + (buffer.kept ? 1 : 0));
      root_.push_back(b);
      last_copy_.push_back(b);
    }
    granted_.assign(problem_.buffers.size(), false);
    copies_in_use_.assign(problem_.buffers.size(), 0);
    for (TierMemory& memory : memory_)
      std::stable_sort(memory.requests.begin(), memory.requests.end(),
                       [&](int a, int b) { return place_[a] < place_[b]; });
    for (int t = 0; t < index_.tasks(); ++t)
      if (kept_back_by_gap(t)) ++blocks_left_[t];
  }

  /// True for hops before the last one of a gap: they would fill windows for nothing if the copy
  /// survives. The last hop waits for the grant of the later copy, which decides the gap.
  bool kept_back_by_gap(int task) const {
    if (index_.gap_of[task] == kNoGap) return false;
    const std::vector<int>& used = index_.buffers_of[task];
    return !std::binary_search(used.begin(), used.end(), problem_.gaps[index_.gap_of[task]].after);
  }

  bool unfinished() const { return ended_count_ < index_.tasks(); }

  void settle() {
    do {
      for (TierMemory& memory : memory_) grant(memory);
    } while (end_cancelled() || start());
    find_rates();
  }

  void grant(TierMemory& memory) {
    for (; memory.next < memory.requests.size(); ++memory.next) {
      const int b = memory.requests[memory.next];
      if (users_left_[b] == 0) continue;  // all its users were cancelled
      const int gap = index_.gap_before[b];
      if (gap != kNoGap && fates_[gap] == Fate::open) {
        survive(memory, gap);
        continue;
      }
      const std::int64_t bytes = index_.held_bytes(b);
      const bool short_of = memory.used + bytes > memory.budget;
      if (short_of && problem_.tiers[problem_.buffers[b].tier].ladder) run_.tight = true;
      if (memory.used - memory.reclaimable + bytes > memory.budget) return;
      while (memory.used + bytes > memory.budget) give_up(memory, *memory.idle.rbegin());
      memory.used += bytes;
      copies_in_use_[b] = 1;
      give(b);
    }
  }

  void give(int buffer) {
    granted_[buffer] = true;
    for (int user : problem_.buffers[buffer].users) unblock(user);
  }

  /// Lets the later copy take over the memory of the earlier one.
  void survive(TierMemory& memory, int gap) {
    const int before = problem_.gaps[gap].before, after = problem_.gaps[gap].after;
    const int root = root_[before];
    if (copies_in_use_[root] == 0) {
      memory.reclaimable -= index_.held_bytes(root);
      memory.idle.erase({place_[after], root});
    }
    fates_[gap] = Fate::survives;
    root_[after] = root;
    last_copy_[root] = after;
    ++copies_in_use_[root];
    for (int in : problem_.gaps[gap].ins) cancelled_[in] = true;  // the grant must not start it
    give(after);
    for (int in : problem_.gaps[gap].ins) retire(in);
  }

  /// Frees an idle copy: the later copy will be brought.
  void give_up(TierMemory& memory, std::pair<int, int> idle) {
    const int root = idle.second;
    memory.idle.erase(idle);
    memory.used -= index_.held_bytes(root);
    memory.reclaimable -= index_.held_bytes(root);
    const int gap = index_.gap_after[last_copy_[root]];
    fates_[gap] = Fate::brought;
    for (int in : problem_.gaps[gap].ins)
      if (kept_back_by_gap(in)) unblock(in);
  }

  void release(int buffer) {
    if (!granted_[buffer]) return;  // all its users were cancelled
    const int root = root_[buffer];
    if (--copies_in_use_[root] > 0) return;
    TierMemory& memory = memory_[problem_.buffers[buffer].tier];
    const int gap = index_.gap_after[last_copy_[root]];
    if (gap == kNoGap) {
      memory.used -= index_.held_bytes(root);
    } else {
      memory.reclaimable += index_.held_bytes(root);
      memory.idle.insert({place_[problem_.gaps[gap].after], root});
    }
  }

  void unblock(int task) {
    if (--blocks_left_[task] == 0 && !cancelled_[task]) make_ready(task);
  }

  void make_ready(int task) {
    if (needs_left_[task] == 0 && blocks_left_[task] == 0)
      ready_[problem_.tasks[task].queue].emplace(tail_ns_[task], -task);
  }

  void retire(int task) {
    stop_using(task);
    if (needs_left_[task] == 0) ending_.push_back(task);
    if (problem_.tasks[task].ordered) call_next_ordered();
  }

  void stop_using(int task) {
    if (!limited_) return;
    for (int b : index_.buffers_of[task])
      if (--users_left_[b] == 0) release(b);
  }

  /// Ends cancelled tasks when they could have started.
  bool end_cancelled() {
    if (ending_.empty()) return false;
    while (!ending_.empty()) {
      const int task = ending_.back();
      ending_.pop_back();
      pass_on(task);
    }
    return true;
  }

  void pass_on(int task) {
    ended_[task] = true;
    ++ended_count_;
    for (int other : index_.needed_by[task]) {
      if (--needs_left_[other] > 0) continue;
      if (cancelled_[other]) {
        ending_.push_back(other);
      } else {
        make_ready(other);
      }
    }
  }

  bool start() {
    bool started = false;
    for (int q = 0; q < problem_.queues; ++q) {
      if (running_[q].task >= 0 || ready_[q].empty()) continue;
      const int task = -ready_[q].top().second;
      ready_[q].pop();
      running_[q] = {task, problem_.tasks[task].cost_ns * kFullRate, 0};
      ++running_count_;
      run_.start_ns[task] = now_;
      started = true;
      if (problem_.tasks[task].ordered) call_next_ordered();
    }
    return started;
  }

  /// Calls the first ordered task that is neither started nor cancelled.
  void call_next_ordered() {
    const std::vector<int>& list = index_.ordered;
    while (next_ordered_ < list.size()) {
      const int task = list[next_ordered_];
      if (run_.start_ns[task] < 0 && !cancelled_[task]) return;
      if (++next_ordered_ < list.size()) unblock(list[next_ordered_]);
    }
  }

  void find_rates() {
    shares_.clear();
    for (const Running& r : running_)
      if (r.task >= 0) shares_.push_back(&problem_.tasks[r.task].shares);
    const std::vector<std::int64_t>& rates = fair_rates_.of(shares_);
    std::size_t next = 0;
    for (Running& r : running_)
      if (r.task >= 0) r.rate = rates[next++];
  }

  /// Moves on to the next end of a task. Ends are whole nanoseconds.
  void advance() {
    std::int64_t step = -1;
    for (const Running& r : running_) {
      if (r.task < 0) continue;
      const std::int64_t needed = (r.left + r.rate - 1) / r.rate;
      step = step < 0 ? needed : std::min(step, needed);
    }
    now_ += step;
    for (Running& r : running_) {
      if (r.task < 0) continue;
      r.left -= step * r.rate;
      if (r.left > 0) continue;
      const int task = r.task;
      r.task = -1;
      --running_count_;
      run_.end_ns[task] = now_;
      stop_using(task);
      pass_on(task);
    }
  }

  /// Called if nothing runs and nothing can start: the first unfinished task is kept back by a gap.
  void resume() {
    STRATA_CHECK(limited_, "tasks that need one another");
    while (ended_[(*sequence_)[first_unfinished_]]) ++first_unfinished_;
    const int task = (*sequence_)[first_unfinished_];
    STRATA_CHECK(kept_back_by_gap(task) && fates_[index_.gap_of[task]] == Fate::open, "task", task,
                 "never starts");
    const ScheduleGap& gap = problem_.gaps[index_.gap_of[task]];
    TierMemory& memory = memory_[problem_.buffers[gap.after].tier];
    const std::pair<int, int> idle{place_[gap.after], root_[gap.before]};
    STRATA_CHECK(memory.idle.contains(idle), "task", task, "is kept back by a copy in use");
    give_up(memory, idle);
  }

  const ScheduleIndex& index_;
  const ScheduleProblem& problem_;
  const std::vector<std::int64_t>& tail_ns_;
  const bool limited_;
  std::int64_t now_ = 0;
  SimulatedRun run_;

  std::vector<int> needs_left_;   // one per task
  std::vector<int> blocks_left_;  // one per task: grants, the ordered task before, an open gap
  std::vector<bool> cancelled_, ended_;
  std::vector<int> ending_;  // cancelled tasks that could start
  int ended_count_ = 0;
  std::vector<Fate> fates_;

  std::vector<TierMemory> memory_;
  std::vector<int> place_;          // one per buffer: its first use in the sequence
  std::vector<int> users_left_;     // one per buffer
  std::vector<bool> granted_;       // one per buffer
  std::vector<int> root_;           // one per buffer: the first copy in the same memory
  std::vector<int> last_copy_;      // one per root
  std::vector<int> copies_in_use_;  // one per root

  std::vector<Ready> ready_;  // one per queue
  std::vector<Running> running_;
  int running_count_ = 0;
  FairRates fair_rates_{problem_.resources};
  std::vector<const std::vector<ResourceShare>*> shares_;  // of what runs
  std::size_t next_ordered_ = 0;
  const std::vector<int>* sequence_ = nullptr;
  std::size_t first_unfinished_ = 0;
};

}  // namespace

SimulatedRun simulate_unlimited(const ScheduleIndex& index,
                                const std::vector<std::int64_t>& tail_ns) {
  return Simulation(index, tail_ns, nullptr, nullptr).run();
}

SimulatedRun simulate(const ScheduleIndex& index, const std::vector<std::int64_t>& tail_ns,
                      const std::vector<int>& sequence,
                      const std::vector<std::int64_t>& budget_bytes) {
  return Simulation(index, tail_ns, &sequence, &budget_bytes).run();
}

}  // namespace strata::runtime

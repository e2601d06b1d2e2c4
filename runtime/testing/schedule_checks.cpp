#include "runtime/testing/schedule_checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace strata::runtime {
namespace {

std::int64_t rounded(const ScheduleProblem& problem, int buffer) {
  const std::int64_t alignment = problem.tiers[problem.buffers[buffer].tier].alignment;
  return (problem.buffers[buffer].bytes + alignment - 1) / alignment * alignment;
}

/// Memory of a root: tasks that use it, when, where in the list and in its tier.
struct Stretch {
  int root = 0, tier = 0;
  std::vector<int> users;
  std::int64_t begin = 0, end = 0;  // bytes
  std::int64_t from_ns = 0, to_ns = 0;
  int first = 0, last = 0;  // list positions
  bool filled_before = false, kept = false;
  std::int64_t place = kAnyPlace;
};

std::vector<Stretch> stretches(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<int> position(problem.tasks.size(), -1);
  for (std::size_t i = 0; i < schedule.order.size(); ++i)
    position[schedule.order[i]] = static_cast<int>(i);
  const std::vector<int> root = shared_roots(problem, schedule);
  std::map<int, Stretch> found;
  for (std::size_t b = 0; b < problem.buffers.size(); ++b)
    for (int user : problem.buffers[b].users) {
      if (position[user] < 0) continue;
      const auto [at, is_new] = found.try_emplace(root[b]);
      Stretch& s = at->second;
      if (is_new) {
        s.root = root[b];
        s.tier = problem.buffers[b].tier;
        s.begin = schedule.offset_bytes[root[b]];
        s.end = s.begin + rounded(problem, root[b]);
        s.from_ns = schedule.start_ns[user];
        s.to_ns = schedule.end_ns[user];
        s.first = s.last = position[user];
      }
      s.filled_before = s.filled_before || problem.buffers[b].filled_before;
      s.kept = s.kept || problem.buffers[b].kept;
      s.place = std::max(s.place, problem.buffers[b].place_bytes);
      s.users.push_back(user);
      s.from_ns = std::min(s.from_ns, schedule.start_ns[user]);
      s.to_ns = std::max(s.to_ns, schedule.end_ns[user]);
      s.first = std::min(s.first, position[user]);
      s.last = std::max(s.last, position[user]);
    }
  std::vector<Stretch> list;
  list.reserve(found.size());
  for (auto& [at, s] : found) {
    if (s.filled_before) s.from_ns = s.first = 0;
    if (s.kept) s.to_ns = schedule.makespan_ns;
    if (s.kept) s.last = static_cast<int>(schedule.order.size());
    list.push_back(std::move(s));
  }
  return list;
}

class Judge {
 public:
  Judge(const ScheduleProblem& problem, const Schedule& schedule)
      : problem_(problem), schedule_(schedule), cancelled_(problem.tasks.size(), false) {}

  std::vector<std::string> run() {
    check_which_run();
    if (!faults_.empty()) return faults_;
    check_needs();
    check_queues();
    check_order();
    check_held();
    check_places();
    return faults_;
  }

 private:
  void fault(const std::string& what, std::int64_t a, std::int64_t b) {
    faults_.push_back(what + " " + std::to_string(a) + ", " + std::to_string(b));
  }

  void check_which_run() {
    for (std::size_t g = 0; g < problem_.gaps.size(); ++g)
      if (schedule_.survives[g])
        for (int in : problem_.gaps[g].ins) cancelled_[in] = true;
    std::vector<int> seen(problem_.tasks.size(), 0);
    for (int t : schedule_.order) ++seen[t];
    for (std::size_t t = 0; t < seen.size(); ++t) {
      if (seen[t] != (cancelled_[t] ? 0 : 1)) fault("runs", static_cast<int>(t), seen[t]);
      if ((schedule_.start_ns[t] >= 0) == cancelled_[t])
        fault("has a start", static_cast<int>(t), 0);
    }
  }

  /// Also through cancelled tasks, and from the filling of the earlier copy.
  void check_needs() {
    std::vector<std::int64_t> possible(problem_.tasks.size(), 0);
    for (std::size_t t = 0; t < problem_.tasks.size(); ++t) {
      std::vector<int> needs = problem_.tasks[t].after;
      for (const ScheduleGap& gap : problem_.gaps)
        if (cancelled_[t] && std::count(gap.ins.begin(), gap.ins.end(), static_cast<int>(t)) > 0)
          needs.push_back(problem_.buffers[gap.before].users.front());
      for (int other : needs)
        possible[t] =
            std::max(possible[t], cancelled_[other] ? possible[other] : schedule_.end_ns[other]);
      if (cancelled_[t]) continue;
      if (schedule_.start_ns[t] < possible[t])
        fault("starts early", static_cast<int>(t), possible[t]);
      if (schedule_.end_ns[t] - schedule_.start_ns[t] < problem_.tasks[t].cost_ns)
        fault("takes too little time", static_cast<int>(t), schedule_.end_ns[t]);
      if (problem_.tasks[t].shares.empty() &&
          schedule_.end_ns[t] - schedule_.start_ns[t] != problem_.tasks[t].cost_ns)
        fault("takes too much time", static_cast<int>(t), schedule_.end_ns[t]);
      if (schedule_.end_ns[t] > schedule_.makespan_ns) fault("ends late", static_cast<int>(t), 0);
    }
  }

  void check_queues() {
    std::vector<int> last(problem_.queues, -1);
    int last_ordered = -1;
    for (int t : schedule_.order) {
      int& earlier = last[problem_.tasks[t].queue];
      if (earlier >= 0 && schedule_.end_ns[earlier] > schedule_.start_ns[t])
        fault("share a queue at one time", earlier, t);
      earlier = t;
      if (!problem_.tasks[t].ordered) continue;
      if (t < last_ordered) fault("leave their order", last_ordered, t);
      last_ordered = t;
    }
  }

  void check_order() {
    std::vector<int> position(problem_.tasks.size(), -1);
    for (std::size_t i = 0; i < schedule_.order.size(); ++i) {
      const int t = schedule_.order[i];
      if (i > 0 && schedule_.start_ns[schedule_.order[i - 1]] > schedule_.start_ns[t])
        fault("stand in the list against their starts", schedule_.order[i - 1], t);
      for (int other : problem_.tasks[t].after)
        if (!cancelled_[other] && position[other] < 0) fault("stands before its need", t, other);
      position[t] = static_cast<int>(i);
    }
  }

  void check_held() {
    for (std::size_t tier = 0; tier < problem_.tiers.size(); ++tier) {
      std::vector<std::pair<std::int64_t, std::int64_t>> changes;
      for (const Stretch& s : stretches(problem_, schedule_)) {
        if (s.tier != static_cast<int>(tier)) continue;
        changes.emplace_back(s.from_ns, s.end - s.begin);
        changes.emplace_back(s.to_ns, s.begin - s.end);
      }
      std::sort(changes.begin(), changes.end());
      const ScheduleTier& limits = problem_.tiers[tier];
      const std::int64_t budget = limits.soft
                                      ? std::max(limits.budget_bytes, schedule_.floor_bytes[tier])
                                      : limits.budget_bytes;
      if (schedule_.arena_bytes[tier] > budget)
        fault("arena over budget", schedule_.arena_bytes[tier], budget);
      std::int64_t held = 0;
      for (const auto& [time, bytes] : changes) {
        held += bytes;
        if (held > schedule_.arena_bytes[tier]) fault("arena overrun at", time, held);
      }
    }
  }

  void check_places() {
    const std::vector<Stretch> list = stretches(problem_, schedule_);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Stretch& a = list[i];
      const ScheduleTier& limits = problem_.tiers[a.tier];
      if (limits.soft) continue;
      if (a.begin < 0 || a.begin % limits.alignment != 0 || a.end > schedule_.arena_bytes[a.tier])
        fault("stands outside its arena or crooked", a.root, a.begin);
      if (a.place != kAnyPlace && a.begin != a.place) fault("stands elsewhere", a.root, a.begin);
      for (std::size_t k = 0; k < i; ++k) {
        const Stretch& b = list[k];
        if (a.tier != b.tier || a.begin >= b.end || b.begin >= a.end) continue;
        if (a.from_ns < b.to_ns && b.from_ns < a.to_ns) fault("overlap in time", b.root, a.root);
        if (a.first <= b.last && b.first <= a.last) fault("overlap in the list", b.root, a.root);
      }
    }
  }

  const ScheduleProblem& problem_;
  const Schedule& schedule_;
  std::vector<bool> cancelled_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults(const ScheduleProblem& problem, const Schedule& schedule) {
  return Judge(problem, schedule).run();
}

std::vector<int> shared_roots(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<int> root(problem.buffers.size());
  for (std::size_t b = 0; b < root.size(); ++b) root[b] = static_cast<int>(b);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t g = 0; g < problem.gaps.size(); ++g) {
      const ScheduleGap& gap = problem.gaps[g];
      if (!schedule.survives[g] || root[gap.after] == root[gap.before]) continue;
      root[gap.after] = root[gap.before];
      changed = true;
    }
  }
  return root;
}

std::vector<std::vector<int>> list_waits(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<std::set<int>> waits(problem.tasks.size());
  std::vector<int> position(problem.tasks.size(), -1);
  for (std::size_t i = 0; i < schedule.order.size(); ++i)
    position[schedule.order[i]] = static_cast<int>(i);
  // Data: what a cancelled task waited for, and who filled the copy that survives.
  for (int t = 0; t < static_cast<int>(waits.size()); ++t) {
    std::vector<int> needs = problem.tasks[t].after;
    for (const ScheduleGap& gap : problem.gaps)
      if (position[t] < 0 && std::count(gap.ins.begin(), gap.ins.end(), t) > 0)
        needs.push_back(problem.buffers[gap.before].users.front());
    for (int other : needs) {
      if (position[other] >= 0) {
        waits[t].insert(other);
      } else {
        waits[t].insert(waits[other].begin(), waits[other].end());
      }
    }
  }
  const std::vector<Stretch> list = stretches(problem, schedule);
  for (const Stretch& a : list)
    for (const Stretch& b : list) {
      if (a.root == b.root || a.tier != b.tier || problem.tiers[a.tier].soft) continue;
      if (a.begin >= b.end || b.begin >= a.end) continue;
      for (int later : b.users)
        for (int earlier : a.users)
          if (position[earlier] < position[later]) waits[later].insert(earlier);
    }
  std::vector<std::vector<int>> result;
  result.reserve(waits.size());
  for (const std::set<int>& of : waits) result.emplace_back(of.begin(), of.end());
  return result;
}

std::vector<std::int64_t> replay(const ScheduleProblem& problem, const Schedule& schedule,
                                 const std::vector<std::vector<int>>& waits,
                                 const std::vector<std::int64_t>& cost_ns) {
  // Queues are filled beforehand, as by threads of their own: no task depends on its place in the
  // list but through its queue and its waits.
  std::vector<std::vector<int>> queues(problem.queues);
  for (int t : schedule.order) queues[problem.tasks[t].queue].push_back(t);
  std::vector<std::size_t> next(queues.size(), 0);
  std::vector<std::int64_t> free_at(queues.size(), 0), end(problem.tasks.size(), -1);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t q = 0; q < queues.size(); ++q) {
      if (next[q] == queues[q].size()) continue;
      const int t = queues[q][next[q]];
      std::int64_t start = free_at[q];
      bool possible = true;
      for (int other : waits[t]) {
        possible = possible && end[other] >= 0;
        start = std::max(start, end[other]);
      }
      if (!possible) continue;
      free_at[q] = end[t] = start + cost_ns[t];
      ++next[q];
      moved = true;
    }
  }
  return end;
}

ScheduleProblem random_problem(std::mt19937_64& random, const RandomProblemSize& size) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  ScheduleProblem problem;
  constexpr int kCompute = 0, kHost = 1, kCommunication = 2, kUpload = 3, kDownload = 4, kDisk = 5;
  problem.queues = 6;
  problem.resources = size.shares ? 2 : 0;
  problem.tiers = {{"device", std::int64_t{1} << 40, 64, false, true},
                   {"pinned", std::int64_t{1} << 40, 64, false, false}};
  if (size.soft) problem.tiers.push_back({"ahead", 0, 1, true, false});
  const auto add = [&](TaskKind kind, int queue, std::vector<int> after) {
    ScheduleTask task;
    task.kind = kind;
    task.queue = queue;
    task.cost_ns = 10 + below(100);
    task.after = std::move(after);
    if (size.shares)
      for (int r = 0; r < problem.resources; ++r)
        if (below(2) == 0) task.shares.push_back({r, 0.1 + 0.1 * below(10)});
    problem.tasks.push_back(task);
    return static_cast<int>(problem.tasks.size()) - 1;
  };
  const auto buffer = [&](int tier, std::int64_t bytes, std::vector<int> users) {
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    problem.buffers.push_back({tier, bytes, std::move(users)});
    return static_cast<int>(problem.buffers.size()) - 1;
  };
  struct Copy {  // of a value whose home is elsewhere
    int buffer = -1;
    std::int64_t bytes = 0;
    int hops = 1;
  };
  std::vector<Copy> values(static_cast<std::size_t>(1 + size.work / 2));
  for (Copy& value : values) {
    value.bytes = 1 + below(1000);
    value.hops = 1 + below(2);
  }
  std::vector<int> work;
  for (int w = 0; w < size.work; ++w) {
    std::vector<int> after, fresh, filled_by;
    if (!work.empty() && below(3) > 0) after.push_back(work.back());
    if (!work.empty() && below(3) == 0)
      after.push_back(work[static_cast<std::size_t>(below(static_cast<int>(work.size())))]);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (int count = below(3); count > 0; --count) {
      Copy& value = values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
      if (std::find(fresh.begin(), fresh.end(), value.buffer) != fresh.end()) continue;
      std::vector<int> ins;
      if (value.hops == 2) {
        ins.push_back(add(TaskKind::in, kDisk, {}));
        ins.push_back(add(TaskKind::in, kUpload, {ins[0]}));
        buffer(1, value.bytes, ins);
      } else {
        ins.push_back(add(TaskKind::in, kCommunication, {}));
        problem.tasks.back().ordered = size.ordered;
      }
      const int copy = buffer(0, value.bytes, {ins.back()});
      if (value.buffer >= 0 && size.gaps) problem.gaps.push_back({value.buffer, copy, ins});
      value.buffer = copy;
      fresh.push_back(copy);
      filled_by.push_back(ins.back());
    }
    after.insert(after.end(), filled_by.begin(), filled_by.end());
    const int task = add(TaskKind::work, below(4) == 0 ? kHost : kCompute, after);
    for (int copy : fresh) problem.buffers[copy].users.push_back(task);
    if (size.soft)
      for (int in : filled_by)
        if (below(2) == 0) buffer(2, 1 + below(10), {in, task});
    if (below(2) == 0) buffer(0, 1 + below(500), {task});  // workspace
    if (below(2) == 0) {                                   // a result that goes home
      const int down = add(TaskKind::out, kDownload, {task});
      const std::int64_t bytes = 1 + below(500);
      buffer(0, bytes, {task, down});
      if (below(2) == 0) {
        const int away = add(TaskKind::out, kDisk, {down});
        buffer(1, bytes, {down, away});
      } else if (size.ordered && below(2) == 0) {
        problem.tasks[down].queue = kCommunication;
        problem.tasks[down].ordered = true;
      }
    }
    if (!work.empty() && below(2) == 0) {  // what one work task leaves for another
      const int from = work[static_cast<std::size_t>(below(static_cast<int>(work.size())))];
      problem.tasks[task].after.push_back(from);
      std::sort(problem.tasks[task].after.begin(), problem.tasks[task].after.end());
      buffer(0, 1 + below(300), {from, task});
    }
    work.push_back(task);
  }
  if (size.windows) {
    std::int64_t place = 0;
    for (int count = 1 + below(3); count > 0; --count) {
      const std::int64_t bytes = 1 + below(600);
      const int user = work[static_cast<std::size_t>(below(static_cast<int>(work.size())))];
      const int home = add(TaskKind::out, kDisk, {user});
      const auto window = [&](std::vector<int> users) -> ScheduleBuffer& {
        ScheduleBuffer& made = problem.buffers[static_cast<std::size_t>(buffer(1, bytes, users))];
        made.place_bytes = place;
        return made;
      };
      window({user, home}).filled_before = true;
      window({add(TaskKind::in, kDisk, {home})}).kept = true;
      place += (bytes + 63) / 64 * 64;
    }
  }
  return problem;
}

}  // namespace strata::runtime

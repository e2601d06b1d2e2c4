#include "runtime/testing/schedule_replay.h"

#include <algorithm>
#include <set>

#include "runtime/testing/root_lives.h"

namespace strata::runtime {

std::vector<std::vector<int>> list_waits(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<std::set<int>> waits(problem.tasks.size());
  std::vector<int> position(problem.tasks.size(), -1);
  for (std::size_t i = 0; i < schedule.order.size(); ++i)
    position[schedule.order[i]] = static_cast<int>(i);
  // Data: all that a cancelled task waited for, and the task that filled the copy that survives.
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
  const std::vector<RootLife> list = root_lives(problem, schedule);
  for (const RootLife& a : list)
    for (const RootLife& b : list) {
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
  // Queues are filled beforehand and run independently: a task depends on its place in the list
  // only through its queue and its waits.
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

}  // namespace strata::runtime

#include "runtime/testing/root_lives.h"

#include <algorithm>
#include <map>
#include <utility>

namespace strata::runtime {
namespace {

std::int64_t rounded(const ScheduleProblem& problem, int buffer) {
  const std::int64_t alignment = problem.tiers[problem.buffers[buffer].tier].alignment;
  return (problem.buffers[buffer].bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

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

std::vector<RootLife> root_lives(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<int> position(problem.tasks.size(), -1);
  for (std::size_t i = 0; i < schedule.order.size(); ++i)
    position[schedule.order[i]] = static_cast<int>(i);
  const std::vector<int> root = shared_roots(problem, schedule);
  std::map<int, RootLife> found;
  for (std::size_t b = 0; b < problem.buffers.size(); ++b)
    for (int user : problem.buffers[b].users) {
      if (position[user] < 0) continue;
      const auto [at, is_new] = found.try_emplace(root[b]);
      RootLife& s = at->second;
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
  std::vector<RootLife> list;
  list.reserve(found.size());
  for (auto& [at, s] : found) {
    if (s.filled_before) s.from_ns = s.first = 0;
    if (s.kept) s.to_ns = schedule.makespan_ns;
    if (s.kept) s.last = static_cast<int>(schedule.order.size());
    list.push_back(std::move(s));
  }
  return list;
}

}  // namespace strata::runtime

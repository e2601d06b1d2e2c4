#include "runtime/testing/schedule_search.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/testing/root_lives.h"

namespace strata::runtime {
namespace {

/// Searches with one choice of surviving copies. In a given order of starts the earliest start of
/// each task is best: it delays nothing else. So trying orders with earliest starts finds a best
/// one.
class Search {
 public:
  Search(const ScheduleProblem& problem, const std::vector<bool>& survives, std::int64_t best_ns,
         std::int64_t nodes_left)
      : problem_(problem), best_(best_ns), nodes_left_(nodes_left), end_(problem.tasks.size(), -1) {
    find_needs(survives);
    find_memory(survives);
    free_at_.assign(problem.queues, 0);
    for (std::size_t t = needs_.size(); t-- > 0;) {
      tail_.insert(tail_.begin(), 0);
    }
    for (std::size_t t = needs_.size(); t-- > 0;) {
      if (cancelled_[t]) continue;
      tail_[t] += problem.tasks[t].cost_ns;
      for (int other : needs_[t]) tail_[other] = std::max(tail_[other], tail_[t]);
      ++tasks_left_;
    }
  }

  void run() { extend(0, 0); }
  std::int64_t best() const { return best_; }
  std::int64_t nodes_left() const { return nodes_left_; }

 private:
  void find_needs(const std::vector<bool>& survives) {
    const std::size_t count = problem_.tasks.size();
    cancelled_.assign(count, false);
    needs_.resize(count);
    for (std::size_t t = 0; t < count; ++t) {
      std::vector<int> after = problem_.tasks[t].after;
      for (std::size_t g = 0; g < survives.size(); ++g) {
        const ScheduleGap& gap = problem_.gaps[g];
        if (!survives[g] || std::count(gap.ins.begin(), gap.ins.end(), static_cast<int>(t)) == 0)
          continue;
        cancelled_[t] = true;
        after.push_back(problem_.buffers[gap.before].users.front());
      }
      for (int other : after) {
        if (cancelled_[other]) {
          needs_[t].insert(needs_[t].end(), needs_[other].begin(), needs_[other].end());
        } else {
          needs_[t].push_back(other);
        }
      }
    }
  }

  void find_memory(const std::vector<bool>& survives) {
    Schedule chosen;
    chosen.survives = survives;
    const std::vector<int> root = shared_roots(problem_, chosen);
    memory_of_.resize(problem_.tasks.size());
    users_left_.assign(root.size(), 0);
    last_end_.assign(root.size(), 0);
    touched_.assign(root.size(), false);
    for (std::size_t b = 0; b < root.size(); ++b)
      for (int user : problem_.buffers[b].users) {
        std::vector<int>& list = memory_of_[user];
        if (cancelled_[user] || std::count(list.begin(), list.end(), root[b]) > 0) continue;
        list.push_back(root[b]);
        ++users_left_[root[b]];
      }
  }

  std::int64_t bytes(int root) const {
    const std::int64_t alignment = problem_.tiers[problem_.buffers[root].tier].alignment;
    return (problem_.buffers[root].bytes + alignment - 1) / alignment * alignment;
  }

  void extend(std::int64_t now, int started) {
    if (started == tasks_left_) {
      best_ = std::min(best_, *std::max_element(end_.begin(), end_.end()));
      return;
    }
    if (--nodes_left_ <= 0 || hopeless(now)) return;
    bool earlier_ordered = false;
    for (int t = 0; t < static_cast<int>(needs_.size()); ++t) {
      if (cancelled_[t] || end_[t] >= 0) continue;
      if (problem_.tasks[t].ordered) {
        if (earlier_ordered) continue;
        earlier_ordered = true;
      }
      const std::int64_t start = earliest_start(t, now);
      if (start < 0 || start + tail_[t] >= best_) continue;
      begin(t, start, started);
    }
  }

  bool hopeless(std::int64_t now) const {
    std::vector<std::int64_t> busy_until(free_at_);
    for (std::int64_t& time : busy_until) time = std::max(time, now);
    for (std::size_t t = 0; t < needs_.size(); ++t) {
      if (cancelled_[t] || end_[t] >= 0) continue;
      if (now + tail_[t] >= best_) return true;
      busy_until[problem_.tasks[t].queue] += problem_.tasks[t].cost_ns;
    }
    return *std::max_element(busy_until.begin(), busy_until.end()) >= best_ && tasks_left_ > 0 &&
           any_left_on(busy_until);
  }

  /// True if a queue that would run past the best time so far has anything left to run.
  bool any_left_on(const std::vector<std::int64_t>& busy_until) const {
    for (std::size_t t = 0; t < needs_.size(); ++t)
      if (!cancelled_[t] && end_[t] < 0 && busy_until[problem_.tasks[t].queue] >= best_)
        return true;
    return false;
  }

  /// Returns -1 if the task can never start, or not before something else starts.
  std::int64_t earliest_start(int task, std::int64_t now) const {
    std::int64_t start = std::max(now, free_at_[problem_.tasks[task].queue]);
    for (int other : needs_[task]) {
      if (end_[other] < 0) return -1;
      start = std::max(start, end_[other]);
    }
    for (std::size_t tier = 0; tier < problem_.tiers.size() && start >= 0; ++tier)
      start = fits_from(static_cast<int>(tier), task, start);
    return start;
  }

  std::int64_t fits_from(int tier, int task, std::int64_t start) const {
    std::int64_t wanted = 0;
    for (int root : memory_of_[task])
      if (problem_.buffers[root].tier == tier && !touched_[root]) wanted += bytes(root);
    if (wanted == 0) return start;
    for (;;) {
      std::int64_t held = 0, next = -1;
      for (std::size_t r = 0; r < touched_.size(); ++r) {
        if (!touched_[r] || problem_.buffers[r].tier != tier) continue;
        if (users_left_[r] == 0 && last_end_[r] <= start) continue;
        held += bytes(static_cast<int>(r));
        if (users_left_[r] == 0 && (next < 0 || last_end_[r] < next)) next = last_end_[r];
      }
      if (held + wanted <= problem_.tiers[tier].budget_bytes) return start;
      if (next < 0) return -1;
      start = next;
    }
  }

  void begin(int task, std::int64_t start, int started) {
    const int queue = problem_.tasks[task].queue;
    const std::int64_t free_before = free_at_[queue], end = start + problem_.tasks[task].cost_ns;
    end_[task] = free_at_[queue] = end;
    std::vector<std::int64_t> ends_before;
    std::vector<bool> touched_before;
    for (int root : memory_of_[task]) {
      ends_before.push_back(last_end_[root]);
      touched_before.push_back(touched_[root]);
      touched_[root] = true;
      last_end_[root] = std::max(last_end_[root], end);
      --users_left_[root];
    }
    extend(start, started + 1);
    for (std::size_t i = 0; i < memory_of_[task].size(); ++i) {
      const int root = memory_of_[task][i];
      ++users_left_[root];
      last_end_[root] = ends_before[i];
      touched_[root] = touched_before[i];
    }
    free_at_[queue] = free_before;
    end_[task] = -1;
  }

  const ScheduleProblem& problem_;
  std::int64_t best_, nodes_left_;
  std::vector<bool> cancelled_;
  std::vector<std::vector<int>> needs_, memory_of_;
  std::vector<std::int64_t> tail_, free_at_, end_, last_end_;
  std::vector<int> users_left_;
  std::vector<bool> touched_;
  int tasks_left_ = 0;
};

}  // namespace

SearchResult search_all(const ScheduleProblem& problem, std::int64_t known_ns,
                        std::int64_t most_nodes) {
  SearchResult result{known_ns, true};
  const std::size_t choices = std::size_t{1} << problem.gaps.size();
  for (std::size_t choice = 0; choice < choices; ++choice) {
    std::vector<bool> survives;
    for (std::size_t g = 0; g < problem.gaps.size(); ++g)
      survives.push_back((choice >> g) % 2 == 1);
    Search search(problem, survives, result.makespan_ns, most_nodes);
    search.run();
    result.makespan_ns = search.best();
    most_nodes = search.nodes_left();
  }
  result.complete = most_nodes > 0;
  return result;
}

}  // namespace strata::runtime

#include "runtime/testing/schedule_checks.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/testing/root_lives.h"

namespace strata::runtime {
namespace {

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

  /// Checks needs, also through cancelled tasks and from the filling of the earlier copy.
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
      for (const RootLife& s : root_lives(problem_, schedule_)) {
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
    const std::vector<RootLife> list = root_lives(problem_, schedule_);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const RootLife& a = list[i];
      const ScheduleTier& limits = problem_.tiers[a.tier];
      if (limits.soft) continue;
      if (a.begin < 0 || a.begin % limits.alignment != 0 || a.end > schedule_.arena_bytes[a.tier])
        fault("stands outside its arena or crooked", a.root, a.begin);
      if (a.place != kAnyPlace && a.begin != a.place) fault("stands elsewhere", a.root, a.begin);
      for (std::size_t k = 0; k < i; ++k) {
        const RootLife& b = list[k];
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

}  // namespace strata::runtime

#include "runtime/schedule_sequence.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/check.h"

namespace strata::runtime {
namespace {

class Sequencer {
 public:
  explicit Sequencer(const ScheduleIndex& index)
      : index_(index), emitted_(index.problem.tasks.size(), false) {
    for (const std::vector<int>& list : index.needs)
      missing_.push_back(static_cast<int>(list.size()));
    earlier_ordered_.assign(emitted_.size(), -1);
    later_ordered_.assign(emitted_.size(), -1);
    for (std::size_t i = 1; i < index.ordered.size(); ++i) {
      earlier_ordered_[index.ordered[i]] = index.ordered[i - 1];
      later_ordered_[index.ordered[i - 1]] = index.ordered[i];
      ++missing_[index.ordered[i]];
    }
  }

  std::vector<int> run(const std::vector<int>& work) {
    for (int t = 0; t < index_.tasks(); ++t)
      if (missing_[t] == 0) now_possible(t);
    emit_outs();
    for (int t : work) emit_with_needs(t);
    for (int t = 0; t < index_.tasks(); ++t) emit_with_needs(t);
    return std::move(sequence_);
  }

 private:
  /// Depth first with a stack of its own: chains of ordered tasks are long.
  void emit_with_needs(int task) {
    stack_.push_back(task);
    while (!stack_.empty()) {
      const int top = stack_.back();
      const std::size_t depth = stack_.size();
      if (!emitted_[top]) push_missing(top);
      if (stack_.size() > depth) continue;
      stack_.pop_back();
      if (emitted_[top]) continue;
      STRATA_CHECK(top == task || index_.problem.tasks[top].kind != TaskKind::work,
                   "the order of work is not one of its needs: task", task, "before", top);
      emit(top);
      emit_outs();
    }
  }

  /// The least one on top.
  void push_missing(int task) {
    const int earlier = earlier_ordered_[task];
    if (earlier >= 0 && !emitted_[earlier]) stack_.push_back(earlier);
    const std::vector<int>& needs = index_.needs[task];
    for (auto need = needs.rbegin(); need != needs.rend(); ++need)
      if (!emitted_[*need]) stack_.push_back(*need);
  }

  void emit(int task) {
    STRATA_CHECK(missing_[task] == 0, "task", task);
    emitted_[task] = true;
    sequence_.push_back(task);
    const auto provide = [&](int other) {
      if (--missing_[other] == 0) now_possible(other);
    };
    for (int other : index_.needed_by[task]) provide(other);
    if (later_ordered_[task] >= 0) provide(later_ordered_[task]);
  }

  void now_possible(int task) {
    if (index_.problem.tasks[task].kind == TaskKind::out) outs_.push(task);
  }

  void emit_outs() {
    while (!outs_.empty()) {
      const int out = outs_.top();
      outs_.pop();
      if (!emitted_[out]) emit(out);
    }
  }

  const ScheduleIndex& index_;
  std::vector<bool> emitted_;
  std::vector<int> missing_;  // needs, and the ordered task before
  std::vector<int> earlier_ordered_, later_ordered_;
  std::vector<int> sequence_, stack_;
  std::priority_queue<int, std::vector<int>, std::greater<>> outs_;
};

}  // namespace

std::vector<int> serial_sequence(const ScheduleIndex& index, const std::vector<int>& work) {
  return Sequencer(index).run(work);
}

}  // namespace strata::runtime

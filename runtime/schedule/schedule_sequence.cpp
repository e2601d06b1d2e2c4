#include "runtime/schedule/schedule_sequence.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

#include "core/check.h"
#include "runtime/schedule/schedule_simulation.h"

namespace strata::runtime {
namespace {

class Sequencer {
 public:
  explicit Sequencer(const ScheduleIndex& index)
      : index_(index),
        emitted_(index.problem.tasks.size(), false),
        later_(index.problem.tasks.size()) {
    for (int t = 0; t < index.tasks(); ++t) {
      missing_.push_back(static_cast<int>(index.earlier[t].size()));
      for (int other : index.earlier[t]) later_[other].push_back(t);
    }
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
  /// Emits depth first with an explicit stack, since chains of ordered tasks are long.
  void emit_with_needs(int task) {
    stack_.push_back(task);
    while (!stack_.empty()) {
      const int top = stack_.back();
      const std::size_t depth = stack_.size();
      if (!emitted_[top]) push_missing(top);
      if (stack_.size() > depth) continue;
      stack_.pop_back();
      if (emitted_[top]) continue;
      emit(top);
      emit_outs();
    }
  }

  /// Pushes needs that a surviving copy may spare last, so that they are requested first.
  void push_missing(int task) {
    const int earlier = earlier_ordered_[task];
    if (earlier >= 0 && !emitted_[earlier]) stack_.push_back(earlier);
    const std::vector<int>& needs = index_.earlier[task];
    for (const bool spared : {false, true})
      for (auto need = needs.rbegin(); need != needs.rend(); ++need)
        if (!emitted_[*need] && (index_.gap_of[*need] != kNoGap) == spared) stack_.push_back(*need);
  }

  void emit(int task) {
    STRATA_CHECK(missing_[task] == 0, "task", task);
    emitted_[task] = true;
    sequence_.push_back(task);
    const auto provide = [&](int other) {
      if (--missing_[other] == 0) now_possible(other);
    };
    for (int other : later_[task]) provide(other);
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
  std::vector<std::vector<int>> later_;
  std::vector<int> missing_;  // unmet of what is earlier, and of the ordered task before
  std::vector<int> earlier_ordered_, later_ordered_;
  std::vector<int> sequence_, stack_;
  std::priority_queue<int, std::vector<int>, std::greater<>> outs_;
};

std::vector<int> work_tasks(const ScheduleIndex& index) {
  std::vector<int> work;
  for (int t = 0; t < index.tasks(); ++t)
    if (index.problem.tasks[t].kind == TaskKind::work) work.push_back(t);
  return work;
}

std::vector<int> work_by_start(const ScheduleIndex& index, const SimulatedRun& run) {
  std::vector<int> work = work_tasks(index);
  std::stable_sort(work.begin(), work.end(),
                   [&](int a, int b) { return run.start_ns[a] < run.start_ns[b]; });
  return work;
}

/// Makes random numbers that are the same on every machine (splitmix64).
class Shaker {
 public:
  /// Returns `time` times a number in [0.5, 1.5).
  std::int64_t shake(std::int64_t time) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return time / 1024 * static_cast<std::int64_t>(512 + (bits >> 54)) +
           time % 1024 * static_cast<std::int64_t>(512 + (bits >> 54)) / 1024;
  }

 private:
  std::uint64_t state_ = 0;
};

/// Bounds the time for trying further orders: their number times the tasks of each.
constexpr int kTasksShaken = 1000;
constexpr int kMostShaken = 8;

}  // namespace

std::vector<int> serial_sequence(const ScheduleIndex& index, const std::vector<int>& work) {
  return Sequencer(index).run(work);
}

std::vector<std::vector<int>> serial_sequences(const ScheduleIndex& index) {
  std::vector<std::vector<int>> sequences;
  const auto add = [&](const std::vector<int>& work) {
    std::vector<int> sequence = serial_sequence(index, work);
    if (std::find(sequences.begin(), sequences.end(), sequence) == sequences.end())
      sequences.push_back(std::move(sequence));
  };
  add(work_by_start(index, simulate_unlimited(index, index.tail_ns)));
  const std::vector<std::int64_t> no_limit(index.problem.tiers.size(), kNoLimit);
  const std::vector<int> first = sequences.front();
  add(work_by_start(index, simulate(index, index.tail_ns, first, no_limit)));
  add(work_tasks(index));
  return sequences;
}

std::vector<ShakenOrder> shaken_orders(const ScheduleIndex& index) {
  std::vector<ShakenOrder> orders;
  // Each rank would find orders that are equally good for itself, and then wait in collectives for
  // what another rank put off.
  if (!index.ordered.empty()) return orders;
  Shaker shaker;
  for (int i = std::min(kMostShaken, kTasksShaken / index.tasks()); i > 0; --i) {
    std::vector<std::int64_t> tail_ns = index.tail_ns;
    for (std::int64_t& tail : tail_ns) tail = shaker.shake(tail);
    const std::vector<int> work = work_by_start(index, simulate_unlimited(index, tail_ns));
    orders.push_back({serial_sequence(index, work), std::move(tail_ns)});
  }
  return orders;
}

}  // namespace strata::runtime

// Finds the least time that the work of a step takes, from how long its instructions took so far.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/execute/observer.h"

namespace strata::runtime {

/// Counts each instruction with the least time that its kind (Demand::signature) has taken in any
/// step so far: what other processes do lengthens single runs of a kind, seldom all of them. For
/// instructions that threads run; disk transfers, which overlap within their queue, are left out.
class LeastTimes final : public Observer {
 public:
  void starting(const Program& program, std::int64_t step) override;
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  void skipped(const Program& program, int instruction) override;
  /// Returns by queue the least seconds of the Programs that were started with `step`. Called for
  /// all steps in order, at most one step late. Any thread.
  std::array<double, kQueues> take(std::int64_t step);
  /// Discards what take() would return.
  void forget(std::int64_t step);
  /// Begins a sum over steps: what was taken so far is not part of it.
  void begin_sum();
  /// Returns the same of all steps that were taken since, by the least times that are known now.
  [[nodiscard]] std::array<double, kQueues> sum() const;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// Instructions of one queue that are equal but for the addresses of their operands.
  struct Kind {
    std::atomic<std::int64_t> least_ns{kNever};
  };
  struct Table {
    const Program* program = nullptr;
    std::vector<Kind*> kinds;               ///< of each instruction; null: it is left out
    std::array<std::int64_t, 2> started{};  ///< runs by step: one is read while the next begins
    std::int64_t summed = 0;                ///< runs of the steps of the sum
  };
  static void add(const Table& table, std::int64_t runs, std::array<double, kQueues>& seconds);
  Table& table_of(const Program& program);
  /// The same for a thread of `queue`, which asks often for one Program.
  const Table& table_of(const Program& program, Queue queue);

  mutable std::mutex mutex_;  ///< guards the next three and numbers of runs, not times
  std::deque<Table> tables_;
  std::deque<Kind> kinds_;
  std::map<std::pair<Queue, std::uint64_t>, Kind*> kind_of_;  ///< by signature
  // Each element is used by the thread of its queue alone.
  std::array<const Table*, kQueues> table_of_queue_{};
  std::array<std::int64_t, kQueues> begun_ns_{};
  std::array<bool, kQueues> is_skipped_{};  ///< the instruction that has begun
};

}  // namespace strata::runtime

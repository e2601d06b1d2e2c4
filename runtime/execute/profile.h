// Adds up how long each instruction of a run took: the raw numbers of a profile.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/execute/trace.h"

namespace strata::runtime {

/// An instruction of a loaded Program, summed over all steps that count.
struct InstructionTime {
  const Program* program = nullptr;
  std::int32_t instruction = 0;
  std::int64_t runs = 0;
  std::int64_t ns = 0;
};

/// A queue, summed over all steps that count.
struct QueueTime {
  std::int64_t busy_ns = 0;    ///< sum over its instructions; disk transfers overlap
  std::int64_t waited_ns = 0;  ///< time that a CPU's compute queue waited for this one
};

/// Leaves out evaluation, and steps before a given one, since memory is touched and libraries are
/// loaded in the first. Which step an instruction belongs to is known before any queue meets it, so
/// a queue that is ahead of the others is counted correctly. Measuring reads the clock twice and
/// allocates nothing.
class ProfileRecorder final : public Observer {
 public:
  ProfileRecorder(TraceOf of, std::int64_t first_step) : of_(of), first_step_(first_step) {}

  void starting(const Program& program, std::int64_t step) override;
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  void waited(const Program& program, int instruction, Queue on, std::int64_t ns) override;
  [[nodiscard]] bool wants_device_times() const override { return of_ == TraceOf::device; }
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;

  // The functions below are for an idle executor, while it and its Programs live.
  [[nodiscard]] std::int64_t first_step() const { return first_step_; }
  /// Returns the number of steps that count.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Returns the time from the first instruction that counts, or the compute queue's wait before
  /// it, to the end of that queue's last one.
  [[nodiscard]] std::int64_t wall_ns() const;
  [[nodiscard]] std::vector<InstructionTime> instructions() const;
  [[nodiscard]] std::array<QueueTime, kQueues> queues() const;

 private:
  struct Slot {
    std::int64_t runs = 0;     ///< all runs, also those that do not count
    std::int64_t counted = 0;  ///< runs that count
    std::int64_t ns = 0;
  };
  /// The times of one Program. A slot is written by the thread of its queue alone.
  struct Table {
    const Program* program = nullptr;
    std::vector<Slot> slots;  ///< one per instruction
    std::int64_t started = 0;
    std::atomic<std::int64_t> first_run{0};  ///< index of the first run that counts
  };
  /// The state of one queue's thread.
  struct OfQueue {
    Table* table = nullptr;
    std::int64_t begun_ns = 0;
    std::int64_t waited_ns = 0;  ///< time that the compute queue waited for this one
  };

  Table& table_of(const Program& program, Queue queue);
  void add(const Program& program, int instruction, std::int64_t begin_ns, std::int64_t end_ns);

  TraceOf of_;
  std::int64_t first_step_;
  std::int64_t steps_ = 0, last_step_ = -1;  ///< used by the thread that starts Programs
  std::mutex mutex_;                         ///< guards the list, not the tables
  std::vector<std::unique_ptr<Table>> tables_;
  std::array<OfQueue, kQueues> of_queue_;
  std::int64_t begin_ns_ = 0, end_ns_ = 0;  ///< span of the compute queue's instructions that count
};

}  // namespace strata::runtime

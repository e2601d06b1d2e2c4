// The queues that the host serves beside a device: disk transfers and operations on host memory.
// Each has a thread. Waits between them and the device are settled by the host.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/execute/bound_instruction.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/queue_progress.h"

namespace strata::runtime {

constexpr bool is_host_queue(Queue queue) {
  return queue == Queue::disk_read || queue == Queue::disk_write || queue == Queue::host;
}

/// The questions that host queues ask the device's side of a run.
class DeviceSide {
 public:
  virtual ~DeviceSide() = default;
  /// The first says whether the device has completed an instruction of a run; the second waits for
  /// that, or until the executor is poisoned, when the first returns true.
  [[nodiscard]] virtual bool has_completed(RunNumber run, std::int32_t instruction) = 0;
  virtual void wait_completed(RunNumber run, std::int32_t instruction) = 0;
  /// Waits until a device queue has ended its part of a run.
  virtual void wait_ended(RunNumber run, Queue queue) = 0;
  [[nodiscard]] virtual bool is_poisoned() const = 0;
  /// Fails the executor with this error, if it is the first one.
  virtual void poison(const Instruction& instruction, const std::exception& error) = 0;
  /// Called on a thread before it calls any of the above.
  virtual void bind_thread() = 0;
};

/// A loaded Program, as far as host queues need it. All that it points to outlives the runs.
struct HostProgram {
  const Program* program = nullptr;
  const std::vector<BoundInstruction>* bound = nullptr;
  std::array<std::vector<std::int32_t>, kQueues> queues;  ///< list indices, for host queues only
  [[nodiscard]] bool empty() const;
};
HostProgram host_program(const Program& program, const std::vector<BoundInstruction>& bound);

/// Runs are numbered as in the executor and begin in order; the last kSlots of them are kept.
class HostQueues {
 public:
  static constexpr std::int64_t kSlots = 3;

  HostQueues(const ExecutorParts& parts, DeviceSide& device);
  ~HostQueues() { stop(); }
  HostQueues(const HostQueues&) = delete;
  HostQueues& operator=(const HostQueues&) = delete;

  /// Ends the threads after the runs that have begun. The executor is poisoned, so they end soon.
  void stop();
  /// Starts the threads once, when the first Program that needs them is loaded.
  void start_threads();
  void begin(RunNumber run, const HostProgram& program);
  /// Waits until the host has completed an instruction of a run, or a whole queue (kFinished).
  void wait(RunNumber run, Queue queue, std::int32_t instruction) const;
  [[nodiscard]] bool has_reached(RunNumber run, Queue queue, std::int32_t instruction) const;

 private:
  struct Run {
    RunNumber number = -1;
    const HostProgram* program = nullptr;
    std::array<QueueProgress, kQueues> progress;
  };
  class DiskQueue;

  void serve(Queue queue, RunNumber first);
  void execute(Run& run, Queue queue);
  void run_operation(Run& run, std::int32_t index);
  /// The first says if all that an instruction waits for has completed; the second waits for it.
  [[nodiscard]] bool is_met(Run& run, const Instruction& in);
  void wait_until_met(Run& run, const Instruction& in);
  [[nodiscard]] const Run& run_of(RunNumber run) const { return runs_[run % kSlots]; }

  const ExecutorParts& parts_;
  DeviceSide& device_;
  std::array<Run, kSlots> runs_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  RunNumber begun_ = 0;  ///< number of runs begun, under mutex_
  bool stopping_ = false;
};

}  // namespace strata::runtime

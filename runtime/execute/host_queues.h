// The queues that the host serves beside a device: disk transfers and operations on host memory.
// One thread each; what they and the device wait for of one another is settled by the host.
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

/// What host queues ask of the device's side of a run.
class DeviceSide {
 public:
  virtual ~DeviceSide() = default;
  /// Says whether, or waits until, the device has completed an instruction of a run. Both return
  /// when the executor is poisoned.
  [[nodiscard]] virtual bool has_completed(RunNumber run, std::int32_t instruction) = 0;
  virtual void wait_completed(RunNumber run, std::int32_t instruction) = 0;
  /// Waits until a device queue has ended its part of a run.
  virtual void wait_ended(RunNumber run, Queue queue) = 0;
  [[nodiscard]] virtual bool is_poisoned() const = 0;
  /// Fails the executor with this error if it is the first.
  virtual void poison(const Instruction& instruction, const std::exception& error) = 0;
  /// Before the thread calls any of the above.
  virtual void bind_thread() = 0;
};

/// A loaded Program, as far as host queues know it. All of it outlives the runs.
struct HostProgram {
  const Program* program = nullptr;
  const std::vector<BoundInstruction>* bound = nullptr;
  std::array<std::vector<std::int32_t>, kQueues> queues;  ///< list indices, of host queues only
  [[nodiscard]] bool empty() const;
};
HostProgram host_program(const Program& program, const std::vector<BoundInstruction>& bound);

/// Runs are numbered as the executor's and begun in order; at most kSlots are remembered.
class HostQueues {
 public:
  static constexpr std::int64_t kSlots = 3;

  HostQueues(const ExecutorParts& parts, DeviceSide& device);
  ~HostQueues() { stop(); }
  HostQueues(const HostQueues&) = delete;
  HostQueues& operator=(const HostQueues&) = delete;

  /// Ends the threads after the runs that have begun: the executor is poisoned, so they end soon.
  void stop();
  /// Starts threads, once, for Programs that need them.
  void start_threads();
  void begin(RunNumber run, const HostProgram& program);
  /// Waits until the host has done an instruction of a run, or a whole queue (kFinished).
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
  /// Whether all that an instruction waits for has completed, and until then.
  [[nodiscard]] bool is_met(Run& run, const Instruction& in);
  void wait_until_met(Run& run, const Instruction& in);
  [[nodiscard]] const Run& run_of(RunNumber run) const { return runs_[run % kSlots]; }

  const ExecutorParts& parts_;
  DeviceSide& device_;
  std::array<Run, kSlots> runs_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  RunNumber begun_ = 0;  ///< runs, under mutex_
  bool stopping_ = false;
};

}  // namespace strata::runtime

// The runs that are under way on a device, and the answers to what host queues ask about them.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/device/device.h"
#include "runtime/execute/device_program.h"
#include "runtime/execute/device_times.h"
#include "runtime/execute/host_queues.h"
#include "runtime/execute/queue_progress.h"
#include "runtime/execute/run_failure.h"

namespace strata::runtime {

/// The slot of one run.
struct DeviceRun {
  const DeviceProgram* program = nullptr;
  std::int64_t step = 0;                          ///< step that the run belongs to
  std::int64_t collectives_before = 0;            ///< its communicator's `begun` at the start
  std::array<EventPointer, kQueues> inputs_read;  ///< null for queues that the host serves
  std::array<EventPointer, kQueues> ended;        ///< ends of queues, for waits of the host
  EventPointer finished;
  QueueProgress enqueued;    ///< progress of enqueuing; the host may use its events
  DeviceTimes::Spans spans;  ///< used only if an observer wants times
};

/// The enqueuing thread fills slots in the order of runs; host queues ask about runs that they were
/// told to begin. Device and failure outlive it.
class DeviceRuns final : public DeviceSide {
 public:
  DeviceRuns(kernels::Device& device, RunFailure& failure);

  [[nodiscard]] DeviceRun& of(RunNumber run) { return places_[run % HostQueues::kSlots]; }
  /// Returns the slot for a run that begins now.
  DeviceRun& begin(RunNumber run, const DeviceProgram& program);
  /// Wakes threads that wait for instructions never to be enqueued: they see the poison and end.
  void release();

  [[nodiscard]] bool has_completed(RunNumber run, std::int32_t instruction) override;
  void wait_completed(RunNumber run, std::int32_t instruction) override;
  void wait_ended(RunNumber run, Queue queue) override;
  [[nodiscard]] bool is_poisoned() const override { return failure_.is_poisoned(); }
  void poison(const Instruction& instruction, const std::exception& error) override;
  void bind_thread() override { device_.bind_thread(); }

 private:
  kernels::Device& device_;
  RunFailure& failure_;
  std::array<DeviceRun, HostQueues::kSlots> places_;  ///< one more than in flight: see HostQueues
};

}  // namespace strata::runtime

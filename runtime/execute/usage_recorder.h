// Measures what the queues did since the last call: time at work, bytes moved, time in which the
// compute queue waited for each of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/execute/trace.h"

namespace strata::runtime {

/// Times are 0 if the executor does not measure them: on a device, for all but the host's queues,
/// unless the recorder is one of TraceOf::device.
struct QueueUsage {
  double busy_seconds = 0;
  double waited_seconds = 0;  ///< time that the compute queue waited for this one
  std::int64_t bytes = 0;     ///< bytes moved between tiers or sent to other ranks
};
using Usage = std::array<QueueUsage, kQueues>;
void add(Usage& sum, const Usage& more);

class UsageRecorder final : public Observer {
 public:
  explicit UsageRecorder(TraceOf of = TraceOf::queues) : of_(of) {}
  void begin_program(const Program& program, std::int64_t step) override;
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  [[nodiscard]] bool wants_device_times() const override { return of_ == TraceOf::device; }
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;
  void waited(const Program& program, int instruction, Queue on, std::int64_t ns) override;
  /// Returns the times since the last call, and the bytes of the Programs started with `step`,
  /// which must have begun. Called for all steps in order, at most one step late. Any thread.
  Usage take(std::int64_t step);

 private:
  struct Counters {
    std::atomic<std::int64_t> busy_ns{0}, waited_ns{0};
  };
  /// True if the executor tells when it ran: always for transfers of a disk, which overlap within
  /// their queue.
  [[nodiscard]] bool is_told(const Instruction& in) const;
  using StepBytes = std::array<std::atomic<std::int64_t>, kQueues>;
  TraceOf of_;
  std::array<Counters, kQueues> counters_;
  std::array<StepBytes, 2> bytes_{};              // two steps: one is read while the next begins
  std::array<std::int64_t, kQueues> begun_ns_{};  // each used by one thread
};

}  // namespace strata::runtime

// Measures when a device worked on each instruction, and tells observers by the host's clock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/device/device.h"
#include "runtime/execute/device_program.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/observer.h"

namespace strata::runtime {

/// A device measures only the time between two of its events, in milliseconds as float: exact to a
/// microsecond over a few seconds, but not over an hour. So times are taken from the start of a
/// recent run, whose own time is a sum of such short distances.
class DeviceTimes {
 public:
  /// The events at which one instruction began and ended on the device.
  struct Span {
    EventPointer begin, end;
  };
  /// Spans of one run, by instruction. Those of host queues exist, but nobody records them.
  using Spans = std::vector<Span>;

  /// Relates both clocks at one moment: sleeps until `stream` reaches it. The arguments outlive it.
  DeviceTimes(kernels::Device& device, kernels::Stream& stream);

  /// Grows to at least `count` spans, keeping those that exist.
  void extend(Spans& spans, std::size_t count) const;
  /// Called before anything of `run` is enqueued on a stream; `run` - 2 must have been reported.
  void begin(RunNumber run, kernels::Stream& stream);
  /// Calls Observer::executed for each instruction of the completed `run` that the device ran;
  /// those of host queues were reported when they ran. Called once per run, in order.
  void report(RunNumber run, const Program& program, const Spans& spans,
              const std::vector<Observer*>& observers);

 private:
  /// The start of a run, by both clocks.
  struct Start {
    EventPointer event;
    std::int64_t ns = 0;
  };
  /// `run` - 2 has completed before `run` begins: nothing of `run` is earlier than its start.
  static constexpr RunNumber kBack = 2;

  [[nodiscard]] Start& start_of(RunNumber run) {
    return starts_[static_cast<std::size_t>(run + kBack) % starts_.size()];
  }
  [[nodiscard]] std::int64_t after(const Start& start, const kernels::Event& event) const;

  kernels::Device& device_;
  std::array<Start, 2 * kBack> starts_;  ///< the first ones stand for the runs before 0
};

}  // namespace strata::runtime

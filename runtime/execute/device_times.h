// When a device worked on each instruction of a run, told to observers by the host's clock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/device/device.h"
#include "runtime/execute/device_program.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/observer.h"

namespace strata::runtime {

/// A device tells times between two of its events only, in floats of milliseconds: exact to a
/// microsecond over a few seconds, not over an hour. So times are taken from the start of a recent
/// run, whose own time is a sum of such short ones.
class DeviceTimes {
 public:
  /// Where one instruction began and ended on the device.
  struct Span {
    EventPointer begin, end;
  };
  /// Spans of one run, by instruction. What the host serves keeps spans that nobody records.
  using Spans = std::vector<Span>;

  /// Takes one moment by both clocks: sleeps until `stream` has come to it. Both outlive this.
  DeviceTimes(kernels::Device& device, kernels::Stream& stream);

  /// At least `count` spans, those there are kept.
  void extend(Spans& spans, std::size_t count) const;
  /// Before anything of `run` is enqueued on a stream; `run` - 2 has been reported.
  void begin(RunNumber run, kernels::Stream& stream);
  /// Calls Observer::executed for each instruction of the completed `run` that the device ran; the
  /// host's were told when they ran. Once per run, in order.
  void report(RunNumber run, const Program& program, const Spans& spans,
              const std::vector<Observer*>& observers);

 private:
  /// A run's start, by both clocks.
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
  std::array<Start, 2 * kBack> starts_;  ///< those before run 0: of construction
};

}  // namespace strata::runtime

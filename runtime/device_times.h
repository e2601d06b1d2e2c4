// When a device worked on each instruction of a run, told to observers by the host's clock.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "runtime/device_program.h"
#include "runtime/observer.h"

namespace strata::runtime {

class DeviceTimes {
 public:
  /// Where one instruction began and ended on the device.
  struct Span {
    EventPointer begin, end;
  };
  /// By instruction of one run. What the host serves keeps spans that nobody records.
  using Spans = std::vector<Span>;

  /// Takes one moment by both clocks: sleeps until `stream` has come to it. Both outlive this.
  DeviceTimes(kernels::Device& device, kernels::Stream& stream);

  /// At least `count` spans, those there are kept.
  void extend(Spans& spans, std::size_t count) const;
  /// Observer::executed for each instruction of a run of `program` that has completed and was on
  /// the device; what the host served was told when it ran.
  void report(const Program& program, const Spans& spans,
              const std::vector<Observer*>& observers) const;

 private:
  [[nodiscard]] std::int64_t nanoseconds(const kernels::Event& event) const;

  kernels::Device& device_;
  EventPointer epoch_;
  std::int64_t epoch_ns_ = 0;
};

}  // namespace strata::runtime

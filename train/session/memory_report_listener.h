// --memory-report: what a session measures for its report, and writing it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/seat.h"
#include "machine/machine.h"
#include "runtime/execute/trace.h"
#include "train/report/measured_run.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// A RunListener of rank 0. Notes each step, and of a few steps every instruction; a device, whose
/// times are not free, is asked for these only where --trace or --profile asks for them anyway.
/// Writes when all is saved; throws IoError. Borrows the request and who hears the text.
class MemoryReportListener {
 public:
  MemoryReportListener(const RunRequest& request, const RunListeners& listeners)
      : request_(request), listeners_(listeners) {}
  void operator()(const RunEvent& event);

 private:
  void begin(const Equipping& equipping);
  void add(const StepDone& done);
  /// Looked up again after a second: the driver takes a while.
  std::optional<std::int64_t> device_bytes();
  void write(const Closing& closing);

  const RunRequest& request_;
  const RunListeners& listeners_;
  comm::Seat seat_;
  std::function<std::optional<kernels::DeviceMemoryFacts>()> device_memory_;
  std::optional<std::int64_t> device_bytes_;
  std::int64_t looked_ns_ = 0;  ///< at the device
  std::optional<runtime::TraceRecorder> recorder_;
  MeasuredRun measured_;
};

}  // namespace strata::train

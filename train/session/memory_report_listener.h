// --memory-report: what a session measures for its report, and writing it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/seat.h"
#include "machine/machine.h"
#include "runtime/execute/trace.h"
#include "train/report/measured_run.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// A RunListener of rank 0. Notes each step, and of a few steps every instruction; a device, whose
/// times are not free, is asked for these only where --trace or --profile asks for them anyway.
/// Writes when all is saved, and then throws Error; or when the run has failed and is released:
/// then it writes what is known, without times of instructions, whose Programs are gone, and warns
/// where it cannot. Borrows the request and who hears the text.
class MemoryReportListener {
 public:
  MemoryReportListener(const RunRequest& request, const RunListeners& listeners)
      : request_(request), listeners_(listeners) {}
  void operator()(const RunEvent& event);
  /// Writes what is known of a run that has failed and is released; only once.
  void tell(const Refused& refused);

 private:
  void begin(const Equipping& equipping);
  void add(const StepDone& done);
  void write(const Closing& closing);
  /// Writes the report of what `programs` do on `machine`, and of all steps so far.
  void write(const compile::StepPrograms& programs, const machine::Machine& machine,
             const std::string& failure, const runtime::TraceRecorder* recorder);

  const RunRequest& request_;
  const RunListeners& listeners_;
  /// What a report needs of the run after a failure.
  struct Kept {
    compile::StepPrograms programs;
    machine::Machine machine;
    comm::Seat seat;
    std::string device;
    TrainOptions options;
  };
  std::optional<Kept> kept_;  ///< from Planned on
  bool is_written_ = false;   ///< or it was tried
  std::function<std::optional<kernels::DeviceMemoryFacts>()> device_memory_;
  std::optional<runtime::TraceRecorder> recorder_;
  MeasuredRun measured_;
};

}  // namespace strata::train

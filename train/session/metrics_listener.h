// Writes the metrics file of a session.
#pragma once

#include <optional>
#include <string>

#include "train/run/run_listeners.h"
#include "train/session/metrics_log.h"
#include "train/session/missing_steps.h"

namespace strata::train {

/// A RunListener that opens the file when training begins (after moving an earlier run's aside with
/// a note) and writes a line for each step, evaluation and checkpoint. Throws the IoError of
/// opening, and that of writing once; at the end of the run it warns of the steps that are missing.
class MetricsListener {
 public:
  /// Borrows the listeners that hear notes and warnings.
  MetricsListener(std::string path, const RunListeners& listeners)
      : path_(std::move(path)), listeners_(listeners) {}
  void operator()(const RunEvent& event);
  /// Warns of the steps that are missing, once: a failure may follow the end of the run. Not while
  /// it hears something.
  void tell_missing();

 private:
  void open(const Began& began);
  void write(const StepDone& done);
  std::string path_;
  const RunListeners& listeners_;
  std::optional<MetricsLog> log_;
  MissingSteps missing_;
  std::optional<IoError> failure_;  ///< not yet thrown
};

}  // namespace strata::train

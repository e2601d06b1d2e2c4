// Event files and CSV files of a session, for people's tools (docs/formats/logs.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "train/config/options.h"
#include "train/run/log_sinks.h"
#include "train/run/run_listeners.h"
#include "train/session/missing_steps.h"
#include "train/session/scalar_log.h"

namespace strata::train {

/// A RunListener of rank 0: opens the files when training begins, and writes numbers of each step,
/// evaluation and checkpoint. Throws the IoError of opening, and once that of writing; at the end
/// of the run it warns of the steps that are missing.
class ToolLogsListener {
 public:
  /// Borrows who hears where the files are.
  ToolLogsListener(const TrainOptions& options, const RunListeners& listeners)
      : sinks_(log_sinks(options)), scaled_(options.dtype == DType::f16), listeners_(listeners) {}
  void operator()(const RunEvent& event);
  /// Warns of the steps that are missing, once: a failure may follow the end of the run. Not while
  /// it hears something.
  void tell_missing();

 private:
  struct Open {
    LogNames names = LogNames::trainer;
    std::string where;  ///< "CSV files in FOLDER"
    std::unique_ptr<ScalarLog> log;
    MissingSteps missing = {};
  };
  void open(const Began& began);
  void write(const RunEvent& event);
  bool write(const Open& open, const StepScalars& found);
  void fail(const IoError& error);
  /// The x of a step: its number, or with DeepSpeed's names the samples until its end.
  [[nodiscard]] std::int64_t x_of(std::int64_t step, LogNames names) const;

  std::vector<LogSink> sinks_;
  std::int64_t step_samples_ = 0;
  bool scaled_;  ///< the loss
  const RunListeners& listeners_;
  std::vector<Open> logs_;
  std::optional<IoError> failure_;  ///< not yet thrown
  bool has_failed_ = false;
};

}  // namespace strata::train

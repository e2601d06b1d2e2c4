// Writes the metrics file: one JSON object per line (JSONL).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/unique_fd.h"
#include "train/run/run_event.h"

namespace strata::train {

/// Moves the lines of an earlier run from `path` to "PATH.old", replacing a file of that name.
/// Returns the new name, or "" if there were no lines. Throws IoError, and InvalidArgument if the
/// file holds something else.
std::string put_earlier_metrics_aside(const std::string& path);

/// Appends lines to a file. Each goes to the system at once and as a whole, so that a killed run
/// keeps what it has reported.
class MetricsLog {
 public:
  /// Called for the first line that cannot be written; later lines are tried nonetheless.
  using OnFailure = std::function<void(const IoError&)>;

  /// Opens the file: empty for a run that begins (`first_step` 0). A run that goes on from
  /// `first_step` removes lines of later steps, which it will write again, and a killed run's torn
  /// last line. Throws IoError.
  explicit MetricsLog(const std::string& path, std::int64_t first_step = 0,
                      OnFailure on_failure = {});
  void write(const StepDone& report);
  void write(const Evaluated& evaluated);
  void write(const Saved& saved);
  void write(const Transfers& transfers);

 private:
  void cut_after(std::int64_t step);
  void append(const std::string& lines);
  std::string path_;
  OnFailure on_failure_;  ///< empty after it was called
  UniqueFd file_;
};

}  // namespace strata::train

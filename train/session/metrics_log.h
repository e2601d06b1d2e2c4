// One JSON object per step (JSONL).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/unique_fd.h"
#include "train/run/run_event.h"

namespace strata::train {

/// Moves lines of an earlier run from `path` to "PATH.old", in place of a file of that name;
/// returns its name, "" where there were none. Throws IoError, and InvalidArgument when the file
/// holds something else.
std::string put_earlier_metrics_aside(const std::string& path);

/// Appends to a file. Each line goes to the system at once and as a
/// whole, so that a killed run keeps what it reported.
class MetricsLog {
 public:
  /// Told of the first line that cannot be written; the others are tried nonetheless.
  using OnFailure = std::function<void(const IoError&)>;

  /// From step 0 (`first_step` 0) the file begins empty; a run that goes on from `first_step` cuts
  /// lines of later steps, and the torn last line of a killed run: it will write them again. Throws
  /// IoError.
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
  OnFailure on_failure_;  ///< empty: it has been told
  UniqueFd file_;
};

}  // namespace strata::train

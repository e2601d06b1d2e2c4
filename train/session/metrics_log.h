// Writes the metrics file: one JSON object per line (JSONL).
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run_event.h"
#include "train/session/appended_file.h"

namespace strata::train {

/// Moves the lines of an earlier run from `path` to "PATH.old", or "PATH.old.2" and so on.
/// Returns the new name, or "" if there were no lines. Throws IoError, and InvalidArgument if the
/// file holds something else.
std::string put_earlier_metrics_aside(const std::string& path);

class MetricsLog {
 public:
  /// Begins an empty file for a run from step 0 (`first_step` 0). A run that goes on from
  /// `first_step` cuts lines of later steps, and the torn last line of a killed run: it will write
  /// them again. Throws IoError.
  explicit MetricsLog(const std::string& path, std::int64_t first_step = 0,
                      AppendedFile::OnFailure on_failure = {});
  /// Each writes a line, and returns false where it could not.
  bool write(const StepDone& report);
  bool write(const Evaluated& evaluated);
  bool write(const Saved& saved);
  bool write(const Transfers& transfers);

 private:
  AppendedFile file_;
};

}  // namespace strata::train

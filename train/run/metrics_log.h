// One JSON object per step (JSONL), and what both it and the progress line say of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/unique_fd.h"
#include "kernels/step_state.h"
#include "train/run/step_bound.h"

namespace strata::train {

struct StepReport {
  std::int64_t step = 0;  ///< steps done, counting this one
  kernels::StepMetrics metrics;
  double seconds = 0;           ///< of this step
  double smoothed_seconds = 0;  ///< of the last steps: what people are shown
  double tokens_per_second = 0;
  double smoothed_tokens_per_second = 0;
  double flops_per_second = 0;  ///< this rank's model arithmetic, recomputation included
  /// Model FLOPs utilization, a fraction (train/accounting); empty when the device's peak is not
  /// known.
  std::optional<double> mfu;
  std::optional<StepBound> bound;  ///< where something is offloaded
  std::int64_t arena_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  /// Since the last checkpoint or the start of the process; empty: nothing is saved.
  std::optional<double> checkpoint_age_seconds;
};

/// Where `path` holds lines of an earlier run, a file "PATH.old" has them now, in place of one of
/// that name; its name. "": there were none. Throws IoError, and InvalidArgument
/// when the file holds something else.
std::string put_earlier_metrics_aside(const std::string& path);

/// Appends to a file; nothing when the path is empty. Each line goes to the system at once and as a
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
  void write(const StepReport& report);
  void write_evaluation(std::int64_t step, double loss);
  /// `blocked_seconds`: for which training stood still; `seconds`: until the commit.
  void write_checkpoint(std::int64_t step, std::int64_t bytes, double blocked_seconds,
                        double seconds);
  /// What each rank moved in all steps: JSON objects, by rank (train/run/transfer_report.h).
  void write_transfers(std::int64_t steps, const std::vector<std::string>& by_rank);

 private:
  void cut_after(std::int64_t step);
  void append(const std::string& lines);
  std::string path_;
  OnFailure on_failure_;  ///< empty: it has been told
  UniqueFd file_;
};

}  // namespace strata::train

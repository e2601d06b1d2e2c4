// Steps whose loss or gradient is not finite: what is said of them, and when they end the run.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/options.h"
#include "train/run/run_event.h"

namespace strata::train {

/// Such steps in a row that end a run: one, or as many as the options say. fp32 has no loss scale
/// to be found and no small range, so that "auto" means one there.
std::int64_t nonfinite_limit(const TrainOptions& options);

/// Told of every step in order. Metrics are the same on all ranks, and so is everything here.
class NonFiniteWatch {
 public:
  explicit NonFiniteWatch(const TrainOptions& options);

  /// Returns what is to be said of this step; mostly nothing.
  std::string take(const StepDone& report);
  /// Why the run is to end; empty: it goes on.
  [[nodiscard]] const std::string& end() const { return end_; }

 private:
  [[nodiscard]] std::string describe(const StepDone& report) const;

  std::int64_t limit_;
  bool is_scaled_;            ///< by a loss scale that overflows are to find
  bool keeps_state_;          ///< of a step that is not finite: its update does not run
  std::int64_t skipped_ = 0;  ///< such steps in a row
  std::int64_t counted_ = 0;  ///< those of them that speak against going on
  std::string end_;
};

}  // namespace strata::train

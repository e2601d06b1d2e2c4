// Watches for steps whose loss or gradient is not finite: warns of them, and ends the run.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/options.h"
#include "train/run/run_event.h"

namespace strata::train {

/// The number of such steps in a row that ends a run: one, or as many as the options say. fp32 has
/// no loss scale to find and no small range, so that "auto" means one there.
std::int64_t nonfinite_limit(const TrainOptions& options);

/// Hears of every step in order. Metrics are the same on all ranks, and so are all results here.
class NonFiniteWatch {
 public:
  explicit NonFiniteWatch(const TrainOptions& options);

  /// Returns a warning about this step; mostly "".
  std::string take(const StepDone& report);
  /// The reason for which the run must end; empty: it goes on.
  [[nodiscard]] const std::string& end() const { return end_; }

 private:
  [[nodiscard]] std::string describe(const StepDone& report) const;

  std::int64_t limit_;
  bool is_scaled_;            ///< a loss scale applies, which overflows help to find
  bool keeps_state_;          ///< the update of a step that is not finite does not run
  std::int64_t skipped_ = 0;  ///< such steps in a row
  std::int64_t counted_ = 0;  ///< number of them that count towards the limit
  std::string end_;
};

}  // namespace strata::train

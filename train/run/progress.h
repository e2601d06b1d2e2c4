// What a person watches: one line per step on a terminal, few lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "train/run/metrics_log.h"

namespace strata::train {

class Progress {
 public:
  /// `every_steps` 0: each step on a terminal (rewriting one line), else about ten lines a run.
  Progress(bool visible, bool terminal, std::int64_t steps, std::int64_t every_steps);
  void show(const StepReport& report);
  void show_evaluation(std::int64_t step, double loss);
  /// Ends a rewritten line.
  void finish();

 private:
  [[nodiscard]] std::string line(const StepReport& report) const;
  bool visible_, terminal_;
  std::int64_t steps_, every_steps_;
  bool line_open_ = false;
  double seconds_ = 0;  ///< smoothed duration of a step
};

}  // namespace strata::train

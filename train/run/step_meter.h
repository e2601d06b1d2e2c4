// Computes what people and tools are shown of a step, from its metrics and the work of its queues.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/machine.h"
#include "runtime/execute/usage_recorder.h"
#include "train/accounting/model_flops.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/run/run_event.h"
#include "train/run/step_bound.h"

namespace strata::train {

/// A mean over the last steps that follows changes: of ten, or of those of twenty seconds where
/// these are more, the latest weighing most. The first step, which also touches all memory for the
/// first time, counts until there is another.
class SmoothedSeconds {
 public:
  /// Seconds of one more step; returns the mean.
  double add(double seconds);

 private:
  std::int64_t steps_ = 0;
  double mean_ = 0;
};

class StepMeter {
 public:
  /// For ExecutorParts::observers; lives as long as the engine.
  [[nodiscard]] runtime::Observer& observer() { return usage_; }

  /// Once, before the first step. `machine`: this rank's.
  void begin(const Engine& engine, const ModelConfig& model, const TrainOptions& options,
             const machine::Machine& machine);
  /// In the order of the steps. `seconds`: since the metrics of the one before.
  StepDone complete(const kernels::StepMetrics& metrics, double seconds);
  /// What was done up to `step` for which there are no metrics (evaluation) is of no step.
  void forget(std::int64_t step) { (void)usage_.take(step); }
  /// Over all steps but the first, which also touches all memory for the first time; none: there
  /// was no other, or nothing is offloaded.
  [[nodiscard]] std::optional<StepBound> mean_bound() const;

 private:
  runtime::UsageRecorder usage_;
  machine::Machine machine_;
  TokenFlops token_flops_;
  machine::Figure peak_;  ///< of the products
  std::int64_t run_steps_ = 0;
  double step_flops_ = 0;   ///< of this rank
  double step_tokens_ = 0;  ///< of all ranks
  int world_ = 1;
  std::int64_t arena_bytes_ = 0, host_arena_bytes_ = 0, disk_arena_bytes_ = 0;
  bool offloads_ = false;
  SmoothedSeconds smoothed_;
  runtime::Usage sum_{};
  double steps_ = 0, seconds_ = 0;
};

}  // namespace strata::train

// Computes what is reported of a step, from its metrics and the work of its queues.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "machine/machine.h"
#include "runtime/execute/least_times.h"
#include "runtime/execute/usage_recorder.h"
#include "train/accounting/model_flops.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/run/run_event.h"
#include "train/run/step_bound.h"

namespace strata::train {

/// A mean of recent step times that follows changes: of ten steps, or of those of twenty seconds if
/// these are more; recent ones weigh most. The first step, which also touches all memory for the
/// first time, counts only until there is a second.
class SmoothedSeconds {
 public:
  /// Adds the seconds of one more step; returns the mean.
  double add(double seconds);

 private:
  std::int64_t steps_ = 0;
  double mean_ = 0;
};

class StepMeter {
 public:
  /// Observers for ExecutorParts::observers; they must live as long as the engine.
  [[nodiscard]] std::array<runtime::Observer*, 2> observers() { return {&usage_, &least_}; }

  /// Called once, before the first step. `machine`: this rank's. `foreseen_seconds`: of a step.
  void begin(const Engine& engine, const ModelConfig& model, const TrainOptions& options,
             const machine::Machine& machine, double foreseen_seconds);
  /// Replaces what was foreseen of a step, before the first one.
  void foresee(double seconds) { foreseen_seconds_ = seconds; }
  [[nodiscard]] double foreseen_seconds() const { return foreseen_seconds_; }
  /// Reports a step; called in order. `seconds`: time since the metrics of the step before.
  StepDone complete(const kernels::StepMetrics& metrics, double seconds);
  /// Discards the work recorded up to `step` that belongs to no step's metrics (evaluation).
  void forget(std::int64_t step) {
    (void)usage_.take(step);
    least_.forget(step);
  }
  /// The bound over all steps that count (warming_steps); nullopt if nothing is offloaded.
  [[nodiscard]] std::optional<StepBound> mean_bound() const;
  /// "foreseen 0.48 s per step, measured 0.52 s (mean of 4 steps, without the first 2)"; empty:
  /// there were none.
  [[nodiscard]] std::string describe_foreseen() const;

 private:
  /// Adds a step that counts as it seems now, and takes back those before which no longer do.
  /// `is_first`: what was counted before does not count any longer.
  void count(double seconds, const runtime::Usage& usage, bool is_first);

  runtime::UsageRecorder usage_;
  runtime::LeastTimes least_;
  machine::Machine machine_;
  TokenFlops token_flops_;
  machine::Figure peak_;  ///< peak of matrix products
  std::int64_t run_steps_ = 0;
  double step_flops_ = 0;   ///< arithmetic of this rank
  double step_tokens_ = 0;  ///< tokens of all ranks
  int world_ = 1;
  std::int64_t arena_bytes_ = 0, pinned_arena_bytes_ = 0, pageable_arena_bytes_ = 0,
               disk_arena_bytes_ = 0;
  bool offloads_ = false;
  double foreseen_seconds_ = 0;
  SmoothedSeconds smoothed_;
  std::size_t done_ = 0;  ///< steps of this process
  // The next three are sums over the steps that count (warming_steps).
  runtime::Usage sum_{};
  double steps_ = 0, seconds_ = 0;
};

}  // namespace strata::train

// Runs the steps of a run, and between them evaluations, checkpoints and the agreed stop.
#pragma once

#include <chrono>
#include <optional>

#include "train/run/batches_ahead.h"
#include "train/run/device_use.h"
#include "train/run/run_batches.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Measures seconds from the end of one step to that of the next.
class StepClock {
 public:
  using Clock = std::chrono::steady_clock;
  void restart();
  /// Returns the seconds since the last restart or lap, for a step that ended at `end`.
  double lap(Clock::time_point end);

 private:
  Clock::time_point last_ = Clock::now();
};

/// Runs the steps from position.steps_done to the last one, or to a stop on request or because of
/// steps that are not finite. All calls except ask_to_stop() are collective. Borrows the parts,
/// which have an engine.
class StepLoop {
 public:
  /// Tells that training begins, and reads the first batches.
  explicit StepLoop(RunParts& run);
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  /// Starts a step, takes the metrics of the one before, and does what is due between steps.
  /// Returns false if there was no step to start: the engine is then drained, every save that began
  /// is committed, and step() must not be called again.
  bool step();
  /// Makes all ranks stop after the same step, soon.
  void ask_to_stop() { asked_ = true; }

 private:
  void take(const std::optional<kernels::StepMetrics>& metrics);
  void pass_border();
  void end();

  RunParts& run_;
  const TrainOptions& options_;
  Engine& engine_;
  CheckpointSaver& saver_;
  const BatchLoader batches_;
  std::optional<BatchesAhead> ahead_;
  StepClock clock_;
  DeviceUse device_use_;
  bool asked_ = false;
};

}  // namespace strata::train

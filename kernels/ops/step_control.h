// Decides once per step, alike on every rank, whether the step is applied, the factor of gradients,
// the learning rate and the next loss scale.
//
// inputs   state u8 [sizeof(StepState)], word i64 [AgreedWord::kWords] summed over all ranks
// outputs  state (in place), control u8 [sizeof(StepControl)], metrics u8 [sizeof(StepMetrics)]
//
// The rules are DeepSpeed's (loss_scaler.py, stage_1_and_2.py), with one difference: gradients are
// divided by the loss scale that multiplied them, also in the step in which the scale grows.
//
//   norm   = sqrt(sum of squares) / loss_scale
//   c      = max(1, (norm + 1e-6) / clip)                 (1 when clip is 0)
//   factor = 1 / (c * loss_scale), rounded to float once
//
// A step with a loss or gradient that is not finite is skipped if the loss scale is dynamic or
// skip_nonfinite is set: weights, moments, powers of beta and schedule stay as they are. Otherwise
// it is applied as in plain PyTorch: the norm is NaN, and with clipping so is the factor.
#pragma once

#include <cstdint>

#include "kernels/ops/lr_schedule.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

enum class ScaleMode : std::uint8_t { none, dynamic, constant };

/// The attributes of step_control. StepState starts with loss_scale = the initial scale (1 for
/// ScaleMode::none) and hysteresis = the rule's hysteresis.
struct StepRules {
  std::int64_t leaves = 1;  ///< of the sums over ranks (gradient_scale.h)
  double clip = 0;          ///< largest global gradient norm, 0: no clipping
  ScaleMode scale_mode = ScaleMode::none;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
  bool skip_nonfinite = false;  ///< also without a dynamic scale
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool bias_correction = true;
  LearningRateSchedule schedule;

  /// True if the control depends on the gradient: on its norm, or on whether it is finite.
  [[nodiscard]] bool needs_gradient() const {
    return clip > 0 || scale_mode != ScaleMode::none || skip_nonfinite;
  }

  [[nodiscard]] Attributes to_attributes() const;
  bool operator==(const StepRules&) const = default;
  /// Absent attributes take the defaults above.
  static StepRules from(const Attributes& attributes);
};

const Operation& step_control_operation();

}  // namespace strata::kernels

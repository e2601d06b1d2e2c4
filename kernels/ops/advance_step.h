// The arithmetic of step_control and early_control (see their headers), for host and device. It
// uses correctly rounded operations alone, so both give the same bits, except for those of a NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/math/host_device.h"
#include "kernels/ops/learning_rate.h"
#include "kernels/ops/step_control.h"
#include "kernels/ops/wide_sum.h"

namespace strata::kernels {
namespace stepping {

/// Does what DeepSpeed's DynamicLossScaler.update_scale does.
STRATA_HOST_DEVICE inline void update_scale(const StepRules& rules, bool overflow,
                                            StepState& state) {
  if (overflow) {
    if (rules.hysteresis == 1 || state.hysteresis == 1) {
      if (state.loss_scale <= rules.min_loss_scale) state.at_floor = 1;
      state.loss_scale = std::max(state.loss_scale / 2, rules.min_loss_scale);
    } else {
      --state.hysteresis;
    }
    state.last_overflow = state.scale_step;
  } else {
    if (rules.consecutive_hysteresis) state.hysteresis = rules.hysteresis;
    const std::int64_t clean = state.scale_step - state.last_overflow - 1;
    if (clean > 0 && clean % rules.loss_scale_window == 0) {
      if (!rules.consecutive_hysteresis) state.hysteresis = rules.hysteresis;
      state.loss_scale *= 2;
    }
  }
  ++state.scale_step;
}

STRATA_HOST_DEVICE inline double clip_factor(double norm, double clip) {
  if (clip <= 0) return 1;
  const double c = (norm + 1e-6) / clip;
  return c <= 1 ? 1 : c;  // NaN stays NaN
}

STRATA_HOST_DEVICE inline void apply_update(const StepRules& rules, double norm, double used_scale,
                                            StepState& state, StepControl& control) {
  control.apply = 1;
  control.first_update = state.updates == 0 ? 1 : 0;
  const double factor = 1 / (clip_factor(norm, rules.clip) * used_scale);
  // Writes the same NaN everywhere, since processors make different ones.
  control.gradient_factor =
      factor == factor ? static_cast<float>(factor) : std::numeric_limits<float>::quiet_NaN();
  ++state.updates;
  state.beta1_power *= rules.beta1;
  state.beta2_power *= rules.beta2;
  if (!rules.bias_correction) return;
  control.bias_correction1 = static_cast<float>(1 - state.beta1_power);
  control.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - state.beta2_power));
}

/// Returns the control of the step that comes next for `state`, and advances `state` by that step.
STRATA_HOST_DEVICE inline StepControl control_step(const StepRules& rules, double rate, bool skip,
                                                   double norm, StepState& state) {
  StepControl control;
  control.slot[(state.updates + state.skipped) % 2] = 1;
  control.learning_rate = static_cast<float>(rate);
  if (skip)
    ++state.skipped;
  else
    apply_update(rules, norm, state.loss_scale, state, control);
  return control;
}

STRATA_HOST_DEVICE inline std::int64_t raised_flags(
    std::span<const std::int64_t, AgreedWord::kWords> word) {
  std::int64_t flags = 0;
  for (int i = 0; i < AgreedWord::kFlags; ++i)
    if (word[static_cast<std::size_t>(AgreedWord::kFirstFlag + i)] != 0)
      flags |= std::int64_t{1} << i;
  return flags;
}

}  // namespace stepping

/// Advances `state` by a step, writes `control` and `metrics`. `word` is summed over all ranks.
STRATA_HOST_DEVICE inline void advance_step(const StepRules& rules,
                                            std::span<const std::int64_t, AgreedWord::kWords> word,
                                            StepState& state, StepControl& control,
                                            StepMetrics& metrics) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const double used_scale = state.loss_scale;
  const bool finite = word[AgreedWord::kNonFinite] == 0;
  const bool skip = !finite && (rules.scale_mode == ScaleMode::dynamic || rules.skip_nonfinite);
  const double norm =
      finite ? std::sqrt(wide_value(word.first<AgreedWord::kDigits>())) / used_scale : kNaN;
  const double rate = learning_rate(rules.schedule, state.updates);

  const std::int64_t step = state.updates + state.skipped;

  control = stepping::control_step(rules, rate, skip, norm, state);
  if (rules.scale_mode == ScaleMode::dynamic) stepping::update_scale(rules, skip, state);

  metrics = StepMetrics{};
  metrics.step = step;
  metrics.loss = word[AgreedWord::kNonFiniteLoss] != 0
                     ? kNaN
                     : static_cast<double>(word[AgreedWord::kLoss]) * kLossUnit /
                           static_cast<double>(rules.leaves);
  metrics.gradient_norm = norm;
  metrics.learning_rate = rate;
  metrics.loss_scale = used_scale;
  metrics.updates = state.updates;
  metrics.skipped = state.skipped;
  metrics.overflow = skip ? 1 : 0;
  metrics.flags = stepping::raised_flags(word);
  metrics.at_floor = state.at_floor;
}

/// Returns the control that advance_step will write for this `state`, whatever the word is. The
/// rules must be such that the control does not depend on the gradient (needs_gradient).
STRATA_HOST_DEVICE inline StepControl control_ahead(const StepRules& rules, StepState state) {
  return stepping::control_step(rules, learning_rate(rules.schedule, state.updates), false, 0,
                                state);
}

}  // namespace strata::kernels

// The schedules of transformers/optimization.py, for host and device: the same bits on both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/math/host_device.h"
#include "kernels/math/portable_math.h"
#include "kernels/ops/lr_schedule.h"

namespace strata::kernels::schedules {

STRATA_HOST_DEVICE inline double real(std::int64_t n) { return static_cast<double>(n); }

STRATA_HOST_DEVICE inline double half_cosine(double progress) {
  return (1 + portable_cos(std::numbers::pi * progress)) / 2;
}

/// Continues half_cosine to any progress >= 0, with period 2.
STRATA_HOST_DEVICE inline double cosine_wave(double progress) {
  const double wave = progress - 2 * std::floor(progress / 2);
  return half_cosine(wave > 1 ? 2 - wave : wave);
}

STRATA_HOST_DEVICE inline double from_zero(const LearningRateSchedule& s, std::int64_t steps) {
  return s.base * (real(steps) / real(std::max<std::int64_t>(1, s.warmup_steps)));
}

/// Returns how far `steps` after the warm-up is on the way to the end of the schedule, at most 1.
STRATA_HOST_DEVICE inline double progress_of(const LearningRateSchedule& s, std::int64_t steps) {
  return std::min(1.0,
                  real(steps) / real(std::max<std::int64_t>(1, s.total_steps - s.warmup_steps)));
}

/// Returns the rate for a `shape` from 0 (base * min_ratio) to 1 (base): linear, never negative.
STRATA_HOST_DEVICE inline double lifted(const LearningRateSchedule& s, double shape) {
  return s.base * std::max(0.0, shape * (1 - s.min_ratio) + s.min_ratio);
}

/// Rises linearly from 0 at the first step, then is constant or falls along a line or a cosine.
STRATA_HOST_DEVICE inline double after_linear_warmup(const LearningRateSchedule& s,
                                                     std::int64_t steps) {
  if (steps < s.warmup_steps) return from_zero(s, steps);
  if (s.kind == ScheduleKind::constant) return s.base;
  const double progress = progress_of(s, steps - s.warmup_steps);
  return lifted(
      s, s.kind == ScheduleKind::linear ? 1 - progress : cosine_wave(s.cycles * 2 * progress));
}

STRATA_HOST_DEVICE inline double cosine_after_raised_warmup(const LearningRateSchedule& s,
                                                            std::int64_t steps) {
  if (steps < s.warmup_steps) {
    if (s.warmup_lr_rate < 0) return from_zero(s, steps + 1);
    return s.base * (s.warmup_lr_rate + (1 - s.warmup_lr_rate) * real(steps) /
                                            real(std::max<std::int64_t>(1, s.warmup_steps - 1)));
  }
  return lifted(s, cosine_wave(s.cycles * 2 * progress_of(s, steps - s.warmup_steps + 1)));
}

STRATA_HOST_DEVICE inline double cosine_with_restarts(const LearningRateSchedule& s,
                                                      std::int64_t steps) {
  if (steps < s.warmup_steps) return from_zero(s, steps);
  const double progress = progress_of(s, steps - s.warmup_steps);
  if (progress >= 1) return 0;
  const double fall = s.cycles * progress;
  return s.base * half_cosine(fall - std::floor(fall));
}

STRATA_HOST_DEVICE inline double polynomial(const LearningRateSchedule& s, std::int64_t steps) {
  if (steps < s.warmup_steps) return from_zero(s, steps);
  if (steps >= s.total_steps) return s.minimum;
  const double left = 1 - progress_of(s, steps - s.warmup_steps);
  double shape = 1;
  for (int i = 0; i < static_cast<int>(s.power); ++i) shape *= left;
  return (s.base - s.minimum) * shape + s.minimum;
}

STRATA_HOST_DEVICE inline double inverse_sqrt(const LearningRateSchedule& s, std::int64_t steps) {
  constexpr std::int64_t kUsual = 10'000;
  if (steps < s.warmup_steps) return from_zero(s, steps);
  const std::int64_t timescale = s.timescale > 0      ? s.timescale
                                 : s.warmup_steps > 0 ? s.warmup_steps
                                                      : kUsual;
  return s.base / std::sqrt(real(steps - s.warmup_steps + timescale) / real(timescale));
}

STRATA_HOST_DEVICE inline double warmup_stable_decay(const LearningRateSchedule& s,
                                                     std::int64_t steps) {
  if (steps < s.warmup_steps) {
    const double progress = real(steps) / real(std::max<std::int64_t>(1, s.warmup_steps));
    if (s.warmup_shape == RampShape::linear) return lifted(s, progress);
    if (s.warmup_shape == RampShape::cosine) return lifted(s, 1 - half_cosine(progress));
    return lifted(s, 1 - std::sqrt(1 - progress));
  }
  const std::int64_t falling = steps - s.warmup_steps - s.stable_steps;
  if (falling < 0) return s.base;
  if (falling >= s.decay_steps) return s.base * s.min_ratio;
  const double progress = real(falling) / real(std::max<std::int64_t>(1, s.decay_steps));
  if (s.decay_shape == RampShape::linear) return lifted(s, 1 - progress);
  if (s.decay_shape == RampShape::cosine) return lifted(s, cosine_wave(s.cycles * 2 * progress));
  return lifted(s, 1 - std::sqrt(progress));
}

}  // namespace strata::kernels::schedules

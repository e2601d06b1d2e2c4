// The formulas of the schedules of lr_schedule.h, for host and device: the same bits on both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/math/host_device.h"
#include "kernels/math/portable_math.h"
#include "kernels/ops/lr_schedule.h"
#include "kernels/ops/ramp_schedules.h"

namespace strata::kernels {
namespace schedules {

/// Returns DeepSpeed's warm-up, 0 to 1, for iteration < warm-up steps.
STRATA_HOST_DEVICE inline double warmup_gamma(const LearningRateSchedule& s, std::int64_t iteration,
                                              std::int64_t warmup) {
  return s.logarithmic ? 1.0 / portable_log(real(warmup)) * portable_log(real(iteration) + 1)
                       : real(iteration) / real(warmup);
}

STRATA_HOST_DEVICE inline double warmup_lr(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t iteration = steps - 1;
  const std::int64_t warmup = std::max<std::int64_t>(2, s.warmup_steps);
  if (iteration < 0) return s.minimum;
  double gamma = 1;
  if (iteration < warmup)
    gamma = warmup_gamma(s, iteration, warmup);
  else if (s.kind == ScheduleKind::warmup_decay)
    gamma = std::max(0.0, real(s.total_steps - iteration) /
                              real(std::max<std::int64_t>(1, s.total_steps - warmup)));
  return s.minimum + (s.maximum - s.minimum) * gamma;
}

STRATA_HOST_DEVICE inline double warmup_cosine(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t iteration = steps - 1;
  const std::int64_t warmup = std::max<std::int64_t>(2, s.warmup_steps);
  if (iteration < 0) return 0;
  if (iteration < warmup)
    return s.base *
           (s.warmup_min_ratio + warmup_gamma(s, iteration, warmup) * (1 - s.warmup_min_ratio));
  const double progress = std::min(
      1.0, real(iteration - warmup + 1) / real(std::max<std::int64_t>(1, s.total_steps - warmup)));
  return s.base * std::max(0.0, s.min_ratio + (1 - s.min_ratio) * half_cosine(progress));
}

/// Returns the height inside the cycle, 0 to 1, rounded down to a stair if the schedule has stairs.
STRATA_HOST_DEVICE inline double cycle_height(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t offset = steps % (s.first_steps + s.second_steps);
  const bool rising = offset <= s.first_steps;
  const double position = rising ? real(offset) : real(s.first_steps + s.second_steps - offset);
  const double length = real(rising ? s.first_steps : s.second_steps);
  const std::int64_t stairs = rising ? s.first_stairs : s.second_stairs;
  if (stairs == 0) return position / length;
  return std::floor(position * real(stairs) / length) / real(stairs);
}

STRATA_HOST_DEVICE inline double one_cycle(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t cycle = s.first_steps + s.second_steps;
  if (steps <= cycle) return s.minimum + (s.maximum - s.minimum) * cycle_height(s, steps);
  if (s.decay_steps == 0) return s.minimum;
  return s.minimum / (1 + s.rate * (real(steps - cycle) / real(s.decay_steps)));
}

STRATA_HOST_DEVICE inline double range_test(const LearningRateSchedule& s, std::int64_t steps) {
  const double interval = real(steps) / real(s.first_steps);
  return s.minimum * (1 + s.rate * (s.first_stairs != 0 ? std::floor(interval) : interval));
}

}  // namespace schedules

/// Returns the learning rate of the step that follows `steps` applied steps: `steps` is 0 for the
/// very first one, and skipped steps do not count. DeepSpeed's counter last_batch_iteration is
/// steps - 1, so its warm-ups start with two steps at the minimum.
[[nodiscard]] STRATA_HOST_DEVICE inline double learning_rate(const LearningRateSchedule& schedule,
                                                             std::int64_t steps) {
  switch (schedule.kind) {
    case ScheduleKind::constant:
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
      return schedules::after_linear_warmup(schedule, steps);
    case ScheduleKind::warmup:
    case ScheduleKind::warmup_decay:
      return schedules::warmup_lr(schedule, steps);
    case ScheduleKind::warmup_cosine:
      return schedules::warmup_cosine(schedule, steps);
    case ScheduleKind::one_cycle:
      return schedules::one_cycle(schedule, steps);
    case ScheduleKind::range_test:
      return schedules::range_test(schedule, steps);
    case ScheduleKind::cosine_warmup:
      return schedules::cosine_after_raised_warmup(schedule, steps);
    case ScheduleKind::cosine_restarts:
      return schedules::cosine_with_restarts(schedule, steps);
    case ScheduleKind::polynomial:
      return schedules::polynomial(schedule, steps);
    case ScheduleKind::inverse_sqrt:
      return schedules::inverse_sqrt(schedule, steps);
    case ScheduleKind::warmup_stable_decay:
      return schedules::warmup_stable_decay(schedule, steps);
  }
  return schedule.base;
}

}  // namespace strata::kernels

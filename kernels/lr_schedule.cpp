#include "kernels/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace strata::kernels {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

double half_cosine(double progress) { return (1 + std::cos(std::numbers::pi * progress)) / 2; }

/// transformers: linear from 0 at the first step, then `shape` of the progress in [0, 1].
double after_linear_warmup(const LearningRateSchedule& s, std::int64_t steps) {
  if (steps < s.warmup_steps) return s.base * (real(steps) / real(s.warmup_steps));
  if (s.kind == ScheduleKind::constant) return s.base;
  const double progress =
      std::min(1.0, real(steps - s.warmup_steps) /
                        real(std::max<std::int64_t>(1, s.total_steps - s.warmup_steps)));
  const double shape = s.kind == ScheduleKind::linear ? 1 - progress : half_cosine(progress);
  return s.base * (s.min_ratio + (1 - s.min_ratio) * std::max(0.0, shape));
}

/// DeepSpeed's warm-up, 0 to 1, for iteration < warm-up steps.
double warmup_gamma(const LearningRateSchedule& s, std::int64_t iteration, std::int64_t warmup) {
  return s.logarithmic ? 1.0 / std::log(real(warmup)) * std::log(real(iteration) + 1)
                       : real(iteration) / real(warmup);
}

double warmup_lr(const LearningRateSchedule& s, std::int64_t steps) {
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

double warmup_cosine(const LearningRateSchedule& s, std::int64_t steps) {
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

/// Height inside the cycle, 0 to 1, held flat on stairs when asked.
double cycle_height(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t offset = steps % (s.first_steps + s.second_steps);
  const bool rising = offset <= s.first_steps;
  const double position = rising ? real(offset) : real(s.first_steps + s.second_steps - offset);
  const double length = real(rising ? s.first_steps : s.second_steps);
  const std::int64_t stairs = rising ? s.first_stairs : s.second_stairs;
  if (stairs == 0) return position / length;
  return std::floor(position * real(stairs) / length) / real(stairs);
}

double one_cycle(const LearningRateSchedule& s, std::int64_t steps) {
  const std::int64_t cycle = s.first_steps + s.second_steps;
  if (steps <= cycle) return s.minimum + (s.maximum - s.minimum) * cycle_height(s, steps);
  if (s.decay_steps == 0) return s.minimum;
  return s.minimum / (1 + s.rate * (real(steps - cycle) / real(s.decay_steps)));
}

double range_test(const LearningRateSchedule& s, std::int64_t steps) {
  const double interval = real(steps) / real(s.first_steps);
  return s.minimum * (1 + s.rate * (s.first_stairs != 0 ? std::floor(interval) : interval));
}

/// Calls visit(name, field) for every field, so that writing and reading cannot differ.
template <typename Schedule, typename Visit>
void each_field(Schedule& s, const Visit& visit) {
  visit("schedule_base", s.base);
  visit("schedule_minimum", s.minimum);
  visit("schedule_maximum", s.maximum);
  visit("schedule_warmup_steps", s.warmup_steps);
  visit("schedule_logarithmic", s.logarithmic);
  visit("schedule_total_steps", s.total_steps);
  visit("schedule_warmup_min_ratio", s.warmup_min_ratio);
  visit("schedule_min_ratio", s.min_ratio);
  visit("schedule_first_steps", s.first_steps);
  visit("schedule_second_steps", s.second_steps);
  visit("schedule_first_stairs", s.first_stairs);
  visit("schedule_second_stairs", s.second_stairs);
  visit("schedule_rate", s.rate);
  visit("schedule_decay_steps", s.decay_steps);
}

}  // namespace

double learning_rate(const LearningRateSchedule& schedule, std::int64_t steps) {
  switch (schedule.kind) {
    case ScheduleKind::constant:
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
      return after_linear_warmup(schedule, steps);
    case ScheduleKind::warmup:
    case ScheduleKind::warmup_decay:
      return warmup_lr(schedule, steps);
    case ScheduleKind::warmup_cosine:
      return warmup_cosine(schedule, steps);
    case ScheduleKind::one_cycle:
      return one_cycle(schedule, steps);
    case ScheduleKind::range_test:
      return range_test(schedule, steps);
  }
  return schedule.base;
}

void set_schedule(Attributes& attributes, const LearningRateSchedule& schedule) {
  attributes.set("schedule_kind", static_cast<double>(schedule.kind));
  each_field(schedule, [&](const char* name, const auto& field) {
    attributes.set(name, static_cast<double>(field));
  });
}

LearningRateSchedule schedule_from(const Attributes& attributes) {
  LearningRateSchedule schedule;
  schedule.kind = static_cast<ScheduleKind>(attributes.integer("schedule_kind", 0));
  each_field(schedule, [&]<typename Field>(const char* name, Field& field) {
    field = static_cast<Field>(attributes.real(name, static_cast<double>(field)));
  });
  return schedule;
}

}  // namespace strata::kernels

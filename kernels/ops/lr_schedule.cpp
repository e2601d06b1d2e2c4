#include "kernels/ops/lr_schedule.h"

namespace strata::kernels {
namespace {

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
  visit("schedule_stable_steps", s.stable_steps);
  visit("schedule_warmup_shape", s.warmup_shape);
  visit("schedule_decay_shape", s.decay_shape);
  visit("schedule_cycles", s.cycles);
  visit("schedule_power", s.power);
  visit("schedule_timescale", s.timescale);
  visit("schedule_warmup_lr_rate", s.warmup_lr_rate);
}

}  // namespace

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

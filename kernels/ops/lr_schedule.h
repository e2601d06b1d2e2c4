// Learning-rate schedules: the formula's kind (learning_rate.h) and its numbers. DeepSpeed's are in
// deepspeed/runtime/lr_schedules.py, those of transformers in transformers/optimization.py.
#pragma once

#include <cstdint>

#include "kernels/device/attributes.h"

namespace strata::kernels {

enum class ScheduleKind : std::uint8_t {
  constant,       ///< transformers: constant, after a linear warm-up when warmup_steps > 0
  linear,         ///< transformers: linear warm-up, then linearly to min_ratio * base
  cosine,         ///< transformers: linear warm-up, then half a cosine to min_ratio * base (and
                  ///< there it stays; transformers' rises again beyond total_steps)
  warmup,         ///< DeepSpeed WarmupLR
  warmup_decay,   ///< DeepSpeed WarmupDecayLR
  warmup_cosine,  ///< DeepSpeed WarmupCosineLR
  one_cycle,      ///< DeepSpeed OneCycle, learning rate only: betas are static attributes of adamw
  range_test,     ///< DeepSpeed LRRangeTest
  cosine_warmup,  ///< transformers: cosine_warmup_with_min_lr, whose warm-up begins above 0
  cosine_restarts,      ///< transformers: cosine_with_restarts
  polynomial,           ///< transformers: linear warm-up, then a power of what is left to `minimum`
  inverse_sqrt,         ///< transformers: linear warm-up, then 1 / sqrt of the steps
  warmup_stable_decay,  ///< transformers: up, flat, down; both ramps have a RampShape
};

/// The curve of a rise or a fall of warmup_stable_decay.
enum class RampShape : std::uint8_t { linear, cosine, one_minus_sqrt };

/// A kind ignores the fields that its formula (learning_rate.h) does not use.
struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::constant;
  double base = 1e-3;               ///< the optimizer's own learning rate
  double minimum = 0;               ///< warmup_min_lr, cycle_min_lr, lr_range_test_min_lr
  double maximum = 1e-3;            ///< warmup_max_lr, cycle_max_lr
  std::int64_t warmup_steps = 0;    ///< warmup_num_steps (DeepSpeed's kinds use at least 2)
  bool logarithmic = false;         ///< warmup_type "log" (DeepSpeed's default) instead of "linear"
  std::int64_t total_steps = 0;     ///< total_num_steps, warm-up included
  double warmup_min_ratio = 0;      ///< WarmupCosineLR: where the warm-up starts, as part of base
  double min_ratio = 0;             ///< where a decay ends, as part of base (cos_min_ratio)
  std::int64_t first_steps = 2000;  ///< cycle_first_step_size; lr_range_test_step_size
  std::int64_t second_steps = 2000;  ///< cycle_second_step_size
  std::int64_t first_stairs = 0;     ///< cycle_first_stair_count; 1: lr_range_test_staircase
  std::int64_t second_stairs = 0;    ///< cycle_second_stair_count
  double rate = 0;                   ///< decay_lr_rate; lr_range_test_step_rate
  std::int64_t decay_steps = 0;      ///< decay_step_size, 0: no decay after the cycle;
                                     ///< num_decay_steps
  std::int64_t stable_steps = 0;     ///< num_stable_steps; below 0 the fall begins inside the rise
  RampShape warmup_shape = RampShape::linear;  ///< warmup_stable_decay
  RampShape decay_shape = RampShape::cosine;   ///< warmup_stable_decay
  double cycles = 0.5;         ///< num_cycles: waves of a cosine; of cosine_restarts its falls
  double power = 1;            ///< of polynomial, a whole number
  std::int64_t timescale = 0;  ///< of inverse_sqrt; 0: warmup_steps, or 10,000
  double warmup_lr_rate = -1;  ///< cosine_warmup: where it starts, as part of base; below 0: 1 / N
  bool operator==(const LearningRateSchedule&) const = default;
};

/// Write a schedule as attributes "schedule_base", "schedule_kind", ... of step_control, and read
/// it back; absent attributes become the defaults.
void set_schedule(Attributes& attributes, const LearningRateSchedule& schedule);
[[nodiscard]] LearningRateSchedule schedule_from(const Attributes& attributes);

}  // namespace strata::kernels

// Learning-rate schedules: which formula (learning_rate.h) and its numbers. DeepSpeed's are those
// of deepspeed/runtime/lr_schedules.py, transformers' those of transformers/optimization.py.
#pragma once

#include <cstdint>

#include "kernels/attributes.h"

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
};

/// Fields that a kind does not name in its formula (learning_rate.h) are ignored by it.
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
  std::int64_t decay_steps = 0;      ///< decay_step_size; 0: no decay after the cycle
  bool operator==(const LearningRateSchedule&) const = default;
};

/// As attributes "schedule_base", "schedule_kind", ... of step_control, and back. Absent: defaults.
void set_schedule(Attributes& attributes, const LearningRateSchedule& schedule);
[[nodiscard]] LearningRateSchedule schedule_from(const Attributes& attributes);

}  // namespace strata::kernels

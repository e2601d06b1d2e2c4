#include "train/config/make_plan.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/step_control.h"
#include "train/config/optimizer_recipe.h"

namespace strata::train {
namespace {

kernels::LearningRateSchedule schedule_of(const TrainOptions& options) {
  const SchedulerOptions& s = options.scheduler;
  kernels::LearningRateSchedule schedule;
  schedule.kind = s.type;
  schedule.base = options.optimizer.learning_rate;
  schedule.minimum = s.warmup_min_lr;
  schedule.maximum = s.warmup_max_lr;
  schedule.warmup_steps = s.warmup_num_steps;
  schedule.logarithmic = s.warmup_type == WarmupType::logarithmic;
  schedule.total_steps = s.total_num_steps;
  schedule.warmup_min_ratio = s.warmup_min_ratio;
  schedule.min_ratio = s.min_lr_rate;
  if (s.num_cycles > 0) schedule.cycles = s.num_cycles;
  switch (s.type) {
    case kernels::ScheduleKind::warmup_cosine:
      schedule.min_ratio = s.min_lr_rate > 0 ? s.min_lr_rate : s.cos_min_ratio;
      break;
    case kernels::ScheduleKind::one_cycle:
      schedule.minimum = s.cycle_min_lr;
      schedule.maximum = s.cycle_max_lr;
      schedule.first_steps = s.cycle_first_step_size;
      schedule.second_steps = s.cycle_second_step_size;
      schedule.first_stairs = s.cycle_first_stair_count;
      schedule.second_stairs = s.cycle_second_stair_count;
      schedule.rate = s.decay_lr_rate;
      schedule.decay_steps = s.decay_step_size;
      break;
    case kernels::ScheduleKind::range_test:
      schedule.minimum = s.lr_range_test_min_lr;
      schedule.first_steps = s.lr_range_test_step_size;
      schedule.rate = s.lr_range_test_step_rate;
      schedule.first_stairs = s.lr_range_test_staircase ? 1 : 0;
      break;
    case kernels::ScheduleKind::cosine_warmup:
      if (s.warmup_lr_rate > 0) schedule.warmup_lr_rate = s.warmup_lr_rate;
      break;
    case kernels::ScheduleKind::cosine_restarts:
      if (s.num_cycles == 0) schedule.cycles = 1;
      break;
    case kernels::ScheduleKind::polynomial:
      schedule.minimum = s.lr_end;
      schedule.power = static_cast<double>(s.power);
      break;
    case kernels::ScheduleKind::inverse_sqrt:
      schedule.timescale = s.timescale;
      break;
    case kernels::ScheduleKind::warmup_stable_decay:
      schedule.decay_steps = s.num_decay_steps;
      schedule.stable_steps = s.num_stable_steps >= 0
                                  ? s.num_stable_steps
                                  : s.total_num_steps - s.warmup_num_steps - s.num_decay_steps;
      schedule.warmup_shape = s.warmup_shape;
      schedule.decay_shape = s.decay_shape;
      break;
    default:
      break;
  }
  return schedule;
}

}  // namespace

void apply_weight_decay(std::vector<runtime::ParameterUnit>& units, const TrainOptions& options) {
  for (runtime::ParameterUnit& unit : units)
    for (runtime::Segment& segment : unit.segments)
      segment.weight_decay = options.no_decay == NoDecay::norms_and_biases && !unit.matrices
                                 ? 0
                                 : options.optimizer.weight_decay;
}

plan::Choices choices_of(const TrainOptions& options) {
  const OffloadOptions& offload = options.offload;
  plan::Choices choices;
  choices.sharding = {static_cast<int>(options.zero.stage),
                      options.zero.param_persistence_threshold_elements,
                      options.zero.model_persistence_threshold_elements};
  choices.micro_batch = options.micro_batch;
  choices.micro_steps = static_cast<int>(options.accumulation);
  choices.layer_major = offload.layer_major;
  choices.sums_away = offload.gradients;
  choices.again = options.activation_checkpointing ? plan::Again::everything
                  : options.recompute_norms        ? plan::Again::norms
                                                   : plan::Again::nothing;
  choices.layer_runs = options.checkpoint_segments;
  choices.again_part = options.checkpoint_ratio;
  choices.optimizer = offload.optimizer;
  choices.parameters = offload.parameters;
  choices.activations = offload.activations;
  choices.actions = options.actions;
  choices.optimizer_part = offload.optimizer_ratio;
  choices.recipe = {.dtype = options.dtype, .optimizer = optimizer_recipe(options)};
  choices.parameter_host_elements = offload.parameter_host_elements;
  if (offload.updates == UpdateTime::gradient) choices.updates = runtime::Updates::gradient;
  if (offload.updates == UpdateTime::step_end) choices.updates = runtime::Updates::step_end;
  return choices;
}

runtime::Plan plan_frame(const TrainOptions& options, int data_ranks) {
  runtime::Plan plan;
  plan.mesh = comm::data_mesh(data_ranks);
  plan.virtual_ranks = static_cast<int>(options.virtual_ranks);
  plan.shape.dtype = options.dtype;
  plan.shape.sequence = options.sequence_length;
  plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)] =
      options.offload.device_memory_bytes;
  plan.gradient.produced = options.dtype;
  plan.gradient.reduced = options.communication_dtype;
  plan.gradient.accumulated = options.accumulation_dtype;
  plan.limits.prefetch_elements =
      options.zero.overlap_comm ? options.zero.prefetch_bucket_elements : 0;
  plan.limits.max_live_elements = options.zero.max_live_parameters_elements;
  plan.limits.max_reuse_distance = options.zero.max_reuse_distance_elements;
  plan.limits.reduce_bucket_elements = options.zero.reduce_bucket_elements;
  plan.limits.gather_bucket_elements = options.zero.allgather_bucket_elements;
  plan.limits.tile_elements = options.tile_elements;
  if (const std::int64_t group = options.zero.sub_group_elements; group > 0) {
    const std::int64_t cells = std::max<std::int64_t>(group / runtime::kCellElements, 1);
    plan.limits.tile_elements = std::min(options.tile_elements, cells * runtime::kCellElements);
  }
  return plan;
}

kernels::Attributes optimizer_attributes(const TrainOptions& options) {
  const OptimizerOptions& o = options.optimizer;
  if (o.type == OptimizerType::sgd)
    return {
        {"momentum", o.momentum}, {"dampening", o.dampening}, {"nesterov", o.nesterov ? 1.0 : 0.0}};
  kernels::Attributes attributes{{"beta1", o.beta1}, {"beta2", o.beta2}};
  if (o.type == OptimizerType::lion) return attributes;
  attributes.set("eps", o.epsilon);
  attributes.set("decoupled", o.type == OptimizerType::adamw ? 1.0 : 0.0);
  return attributes;
}

kernels::Attributes control_attributes(const TrainOptions& options) {
  kernels::StepRules rules;
  rules.clip = options.gradient_clipping;
  if (options.dtype == DType::f16)
    rules.scale_mode = options.loss_scale.fixed_scale > 0 ? kernels::ScaleMode::constant
                                                          : kernels::ScaleMode::dynamic;
  rules.loss_scale_window = options.loss_scale.window_steps;
  rules.hysteresis = options.loss_scale.hysteresis;
  rules.consecutive_hysteresis = options.loss_scale.consecutive_hysteresis;
  rules.min_loss_scale = options.loss_scale.minimum;
  // The update of a step that is not finite would destroy the state, so it is never applied.
  // Updates after their own gradient run too early to know.
  rules.skip_nonfinite = options.offload.updates != UpdateTime::gradient ||
                         options.dtype == DType::f16 ||
                         (options.dtype == DType::bf16 && options.bf16_check_overflow);
  rules.beta1 = options.optimizer.beta1;
  rules.beta2 = options.optimizer.beta2;
  rules.bias_correction = options.optimizer.bias_correction;
  rules.schedule = schedule_of(options);
  return rules.to_attributes();
}

double initial_loss_scale(const TrainOptions& options) {
  if (options.dtype != DType::f16) return 1;
  if (options.loss_scale.fixed_scale > 0) return options.loss_scale.fixed_scale;
  return std::ldexp(1.0, static_cast<int>(options.loss_scale.initial_scale_power));
}

}  // namespace strata::train

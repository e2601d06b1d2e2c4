// Options of the optimizer, the learning rate and the loss scale, and what each of them changes.
#include "train/config/testing/option_effects.h"

namespace strata::train {
namespace {

const Settings kFp16{{"dtype", "fp16"}};
const Settings kSgd{{"optimizer.type", "sgd"}};
const Settings kCosineWarmup{{"scheduler.type", "WarmupCosineLR"}};
const Settings kOneCycle{{"scheduler.type", "OneCycle"}};
const Settings kRangeTest{{"scheduler.type", "LRRangeTest"}};
const Settings kRaisedWarmup{{"scheduler.type", "cosine_warmup_with_min_lr"}};
const Settings kPolynomial{{"scheduler.type", "polynomial"}};
const Settings kInverseSqrt{{"scheduler.type", "inverse_sqrt"}};
const Settings kStable{{"scheduler.type", "warmup_stable_decay"}};

// clang-format off
const EffectRow kRows[] = {
    {{"optimizer.type", "adam"}, {{"optimizer.decoupled", "0"}}},
    {{"optimizer.type", "lion"},
     {{"plan.recipe.optimizer.operation", "lion"}, {"plan.recipe.optimizer.moments", "1"}, {"optimizer.eps", ""},
      {"optimizer.decoupled", ""}}},
    {{"optimizer.type", "sgd"},
     {{"plan.recipe.optimizer.operation", "sgd"}, {"plan.recipe.optimizer.moments", "0"}, {"optimizer.eps", ""},
      {"optimizer.decoupled", ""}, {"optimizer.beta1", ""}, {"optimizer.beta2", ""},
      {"optimizer.momentum", "0"}, {"optimizer.dampening", "0"}, {"optimizer.nesterov", "0"}}},
    {{"optimizer.learning_rate", "0.5"}, {{"control.schedule_base", "0.5"}}},
    {{"optimizer.beta1", "0.5"}, {{"optimizer.beta1", "0.5"}, {"control.beta1", "0.5"}}},
    {{"optimizer.beta2", "0.75"}, {{"optimizer.beta2", "0.75"}, {"control.beta2", "0.75"}}},
    {{"optimizer.epsilon", "0.25"}, {{"optimizer.eps", "0.25"}}},
    {{"optimizer.weight_decay", "0.125"}, {{"big.decay", "0.125"}, {"large.decay", "0.125"}}},
    {{"no_decay", "none"}, {{"small.decay", "0.125"}}, {{"optimizer.weight_decay", "0.125"}}},
    {{"optimizer.bias_correction", "false"}, {{"control.bias_correction", "0"}}},
    {{"optimizer.momentum", "0.5"}, {{"optimizer.momentum", "0.5"}, {"plan.recipe.optimizer.moments", "1"}},
     kSgd},
    {{"optimizer.dampening", "0.5"}, {{"optimizer.dampening", "0.5"}}, kSgd},
    {{"optimizer.nesterov", "true"}, {{"optimizer.nesterov", "1"}}, kSgd},
    {{"gradient_clipping", "2"}, {{"control.clip", "2"}}},

    {{"scheduler.type", "linear"}, {{"control.schedule_kind", "1"}}},
    {{"scheduler.type", "cosine"}, {{"control.schedule_kind", "2"}}},
    {{"scheduler.type", "WarmupLR"}, {{"control.schedule_kind", "3"}}},
    {{"scheduler.type", "WarmupDecayLR"}, {{"control.schedule_kind", "4"}}},
    {{"scheduler.type", "WarmupCosineLR"},
     {{"control.schedule_kind", "5"}, {"control.schedule_min_ratio", "0.0001"}}},
    {{"scheduler.type", "OneCycle"},
     {{"control.schedule_kind", "6"}, {"control.schedule_maximum", "0"}}},
    {{"scheduler.type", "LRRangeTest"},
     {{"control.schedule_kind", "7"}, {"control.schedule_minimum", "0.001"},
      {"control.schedule_rate", "1"}}},
    {{"scheduler.type", "cosine_warmup_with_min_lr"}, {{"control.schedule_kind", "8"}}},
    {{"scheduler.type", "cosine_with_restarts"},
     {{"control.schedule_kind", "9"}, {"control.schedule_cycles", "1"}}},
    {{"scheduler.type", "polynomial"},
     {{"control.schedule_kind", "10"}, {"control.schedule_minimum", "1e-07"}}},
    {{"scheduler.type", "inverse_sqrt"}, {{"control.schedule_kind", "11"}}},
    {{"scheduler.type", "warmup_stable_decay"}, {{"control.schedule_kind", "12"}}},
    {{"scheduler.warmup_type", "log"}, {{"control.schedule_logarithmic", "1"}}},
    {{"scheduler.warmup_min_lr", "0.25"}, {{"control.schedule_minimum", "0.25"}}},
    {{"scheduler.warmup_max_lr", "0.5"}, {{"control.schedule_maximum", "0.5"}}},
    {{"scheduler.warmup_min_ratio", "0.5"}, {{"control.schedule_warmup_min_ratio", "0.5"}}},
    {{"scheduler.cos_min_ratio", "0.25"}, {{"control.schedule_min_ratio", "0.25"}}, kCosineWarmup},
    {{"scheduler.warmup_num_steps", "10"}, {{"control.schedule_warmup_steps", "10"}}},
    {{"scheduler.total_num_steps", "20"}, {{"control.schedule_total_steps", "20"}}},
    {{"scheduler.cycle_min_lr", "0.25"}, {{"control.schedule_minimum", "0.25"}}, kOneCycle},
    {{"scheduler.cycle_max_lr", "0.5"}, {{"control.schedule_maximum", "0.5"}}, kOneCycle},
    {{"scheduler.cycle_first_step_size", "11"}, {{"control.schedule_first_steps", "11"}}, kOneCycle},
    {{"scheduler.cycle_second_step_size", "12"}, {{"control.schedule_second_steps", "12"}},
     kOneCycle},
    {{"scheduler.cycle_first_stair_count", "3"}, {{"control.schedule_first_stairs", "3"}}, kOneCycle},
    {{"scheduler.cycle_second_stair_count", "4"}, {{"control.schedule_second_stairs", "4"}},
     kOneCycle},
    {{"scheduler.decay_lr_rate", "0.5"}, {{"control.schedule_rate", "0.5"}}, kOneCycle},
    {{"scheduler.decay_step_size", "13"}, {{"control.schedule_decay_steps", "13"}}, kOneCycle},
    {{"scheduler.lr_range_test_min_lr", "0.5"}, {{"control.schedule_minimum", "0.5"}}, kRangeTest},
    {{"scheduler.lr_range_test_step_size", "14"}, {{"control.schedule_first_steps", "14"}},
     kRangeTest},
    {{"scheduler.lr_range_test_step_rate", "0.5"}, {{"control.schedule_rate", "0.5"}}, kRangeTest},
    {{"scheduler.lr_range_test_staircase", "true"}, {{"control.schedule_first_stairs", "1"}},
     kRangeTest},
    {{"scheduler.min_lr_rate", "0.25"}, {{"control.schedule_min_ratio", "0.25"}}},
    {{"scheduler.min_lr_rate", "0.25"}, {{"control.schedule_min_ratio", "0.25"}}, kCosineWarmup},
    {{"scheduler.num_cycles", "2"}, {{"control.schedule_cycles", "2"}}},
    {{"scheduler.power", "3"}, {{"control.schedule_power", "3"}}, kPolynomial},
    {{"scheduler.lr_end", "0.5"}, {{"control.schedule_minimum", "0.5"}}, kPolynomial},
    {{"scheduler.timescale", "40"}, {{"control.schedule_timescale", "40"}}, kInverseSqrt},
    {{"scheduler.warmup_lr_rate", "0.5"}, {{"control.schedule_warmup_lr_rate", "0.5"}},
     kRaisedWarmup},
    {{"scheduler.num_stable_steps", "7"}, {{"control.schedule_stable_steps", "7"}}, kStable},
    {{"scheduler.num_decay_steps", "5"},
     {{"control.schedule_decay_steps", "5"}, {"control.schedule_stable_steps", "-5"}}, kStable},
    {{"scheduler.warmup_shape", "cosine"}, {{"control.schedule_warmup_shape", "1"}}, kStable},
    {{"scheduler.decay_shape", "linear"}, {{"control.schedule_decay_shape", "0"}}, kStable},

    {{"loss_scale.fixed_scale", "128"}, {{"loss_scale", "128"}, {"control.scale_mode", "2"}}, kFp16},
    {{"loss_scale.initial_scale_power", "3"}, {{"loss_scale", "8"}}, kFp16},
    {{"loss_scale.window_steps", "15"}, {{"control.loss_scale_window", "15"}}},
    {{"loss_scale.hysteresis", "3"}, {{"control.hysteresis", "3"}}},
    {{"loss_scale.consecutive_hysteresis", "true"}, {{"control.consecutive_hysteresis", "1"}}},
    {{"loss_scale.minimum", "0.5"}, {{"control.min_loss_scale", "0.5"}}},
    {{"bf16_check_overflow", "false"}, {{"control.skip_nonfinite", "0"}},
     {{"dtype", "bf16"}, {"offload.updates", "gradient"}}},
    {{"bf16_check_overflow", "false"}, {}, {{"dtype", "bf16"}}},
    {{"bf16_check_overflow", "false"}, {}, kFp16},
};
// clang-format on

}  // namespace

std::span<const EffectRow> step_option_rows() { return kRows; }

}  // namespace strata::train

// Checks what each option changes in the input of the passes: Plan, attributes of the optimizer and
// of step_control, weight decay, first loss scale. An option without a row here fails.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "runtime/testing/small_model.h"
#include "train/config/make_plan.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

constexpr int kWorld = 2;

/// Names to values, such as "control.clip" to "1".
using Effects = std::map<std::string, std::string>;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A test case: `change` after `before` must have exactly these effects.
struct Row {
  std::pair<std::string, std::string> change;  ///< option, value
  Effects effects;
  Settings before = {};  ///< settings that the option needs to have an effect
};

/// Units above the default persistence threshold, below it (and not decayed), and far above it.
std::vector<runtime::ParameterUnit> units() {
  const auto unit = [](const char* name, std::int64_t elements, bool matrices) {
    runtime::ParameterUnit result;
    result.name = name;
    result.matrices = matrices;
    result.elements = elements;
    result.segments.resize(1);
    return result;
  };
  return {unit("big", 102'400, true), unit("small", 2'048, false), unit("large", 204'800, true)};
}

/// Blocks 1 to 3 are layers, which save values of 64 KiB and more.
const runtime::SmallModelShape kShape{.layers = 3, .batch = 8, .sequence = 64};

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string leaf_text(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::boolean:
      return value.as_boolean() ? "true" : "false";
    case JsonKind::integer:
      return std::to_string(value.as_integer());
    case JsonKind::string:
      return value.as_string();
    case JsonKind::array: {
      std::string text;
      for (const JsonValue& element : value.elements())
        text += (text.empty() ? "" : " ") + leaf_text(element);
      return "[" + text + "]";
    }
    default:
      return value.describe();
  }
}

/// Adds the members of a JSON value by path, units by name.
void flatten(const JsonValue& value, const std::string& name, Effects& effects) {
  if (value.is(JsonKind::object)) {
    for (const auto& [key, member] : value.members())
      if (key != "unit") flatten(member, name + "." + key, effects);
  } else if (name == "plan.saved") {
    for (const JsonValue& range : value.elements())
      flatten(range.at("actions"), name + " " + leaf_text(range.at("blocks")), effects);
  } else if (name == "plan.units") {
    for (const JsonValue& unit : value.elements())
      flatten(unit, unit.at("unit").as_string(), effects);
  } else {
    effects[name] = leaf_text(value);
  }
}

void add_attributes(const kernels::Attributes& attributes, const std::string& name,
                    Effects& effects) {
  for (const auto& [key, value] : attributes.items())
    effects[name + "." + key] = number_text(value);
}

Effects effects_of(const TrainOptions& options) {
  Effects effects;
  std::vector<runtime::ParameterUnit> model = units();
  apply_weight_decay(model, options);
  for (const runtime::ParameterUnit& unit : model)
    effects[unit.name + ".decay"] = number_text(unit.segments.front().weight_decay);
  const auto plan_of = [&](const runtime::Graph& graph) {
    return plan::with_choices(plan_frame(options, kWorld), choices_of(options),
                              [&](const auto&, auto) { return compile::BuiltModel{graph}; });
  };
  runtime::Graph without_layers;
  without_layers.units = model;
  runtime::Plan plan = plan_of(without_layers);
  plan.saved = plan_of(runtime::small_model(kShape).graph).saved;
  flatten(parse_json(plan.to_json(), "plan", {}), "plan", effects);
  add_attributes(optimizer_attributes(options), "optimizer", effects);
  add_attributes(control_attributes(options), "control", effects);
  effects["loss_scale"] = number_text(initial_loss_scale(options));
  return effects;
}

void set(TrainOptions& options, const std::string& name, const std::string& value) {
  const std::vector<OptionField> fields = option_fields(options);
  const OptionField* field = find_field(fields, name);
  ASSERT_NE(field, nullptr) << name << " is no option";
  std::string note;
  ASSERT_EQ(assign(*field, {value}, note), "") << name;
}

const Settings kFp16{{"dtype", "fp16"}};
const Settings kZero3{{"zero.stage", "3"}};
const Settings kSgd{{"optimizer.type", "sgd"}};
const Settings kCosineWarmup{{"scheduler.type", "WarmupCosineLR"}};
const Settings kOneCycle{{"scheduler.type", "OneCycle"}};
const Settings kRangeTest{{"scheduler.type", "LRRangeTest"}};
const Settings kRaisedWarmup{{"scheduler.type", "cosine_warmup_with_min_lr"}};
const Settings kPolynomial{{"scheduler.type", "polynomial"}};
const Settings kInverseSqrt{{"scheduler.type", "inverse_sqrt"}};
const Settings kStable{{"scheduler.type", "warmup_stable_decay"}};
const Settings kOptimizerOnDisk{{"offload.optimizer", "nvme"}};
const Settings kParametersOnDisk{{"zero.stage", "3"}, {"offload.parameters", "nvme"}};
const Settings kCheckpointing{{"activation_checkpointing", "true"}};

// clang-format off
const Row kRows[] = {
    {{"micro_batch", "3"}, {{"plan.shape.batch", "3"}}},
    {{"sequence_length", "256"}, {{"plan.shape.sequence", "256"}}},
    {{"offload.device_memory_bytes", "1GiB"}, {{"plan.budget_bytes.device", "1073741824"}}},
    {{"accumulation", "3"}, {{"plan.micro_steps", "3"}}},
    {{"virtual_ranks", "8"}, {{"plan.virtual_ranks", "8"}}},
    {{"dtype", "bf16"}, {{"plan.shape.dtype", "bf16"}, {"plan.gradient.produced", "bf16"}, {"plan.recipe.dtype", "bf16"}}},
    {{"dtype", "fp16"}, {{"plan.shape.dtype", "fp16"}, {"plan.gradient.produced", "fp16"}, {"plan.recipe.dtype", "fp16"},
                         {"control.scale_mode", "1"}, {"loss_scale", "65536"}}},
    {{"communication_dtype", "bf16"}, {{"plan.gradient.reduced", "bf16"}}},
    {{"accumulation_dtype", "bf16"}, {{"plan.gradient.accumulated", "bf16"}},
     {{"dtype", "bf16"}}},
    {{"state_recipe", "packed-master"}, {{"plan.recipe.optimizer.operation", "adamw_packed"}, {"plan.recipe.optimizer.master", "packed"}}},
    {{"state_recipe", "bf16-moments"},
     {{"plan.recipe.optimizer.moment_dtype", "bf16"}, {"plan.recipe.optimizer.random", "true"}}},
    {{"state_recipe", "packed-bf16-moments"},
     {{"plan.recipe.optimizer.operation", "adamw_packed"}, {"plan.recipe.optimizer.master", "packed"}, {"plan.recipe.optimizer.moment_dtype", "bf16"},
      {"plan.recipe.optimizer.random", "true"}}},
    {{"state_recipe", "8bit"},
     {{"plan.recipe.optimizer.operation", "adamw_8bit"}, {"plan.recipe.optimizer.moment_dtype", "uint8"},
      {"plan.recipe.optimizer.scale_block", "128"}}},
    {{"state_recipe", "bf16-sr"},
     {{"plan.recipe.optimizer.operation", "adamw_bf16"}, {"plan.recipe.optimizer.master", "none"}, {"plan.recipe.optimizer.moment_dtype", "bf16"},
      {"plan.recipe.optimizer.random", "true"}}},

    {{"zero.stage", "1"}, {{"big.shard.optimizer", "true"}, {"small.shard.optimizer", "true"},
                           {"large.shard.optimizer", "true"}}},
    {{"zero.stage", "2"}, {{"big.shard.gradient", "true"}, {"small.shard.gradient", "true"},
                           {"large.shard.gradient", "true"}}, {{"zero.stage", "1"}}},
    {{"zero.stage", "3"}, {{"big.shard.parameter", "true"}, {"large.shard.parameter", "true"}},
     {{"zero.stage", "2"}}},
    {{"zero.reduce_bucket_elements", "5000"}, {{"plan.limits.reduce_bucket_elements", "5000"}}},
    {{"zero.allgather_bucket_elements", "6000"}, {{"plan.limits.gather_bucket_elements", "6000"}}},
    {{"zero.sub_group_elements", "7000"}, {{"plan.limits.tile_elements", "6144"}}},
    {{"zero.sub_group_elements", "0"}, {{"plan.limits.tile_elements", "4194304"}},
     {{"zero.sub_group_elements", "7000"}}},
    {{"zero.prefetch_bucket_elements", "8000"}, {{"plan.limits.prefetch_elements", "8000"}}},
    {{"zero.overlap_comm", "false"}, {{"plan.limits.prefetch_elements", "0"}}},
    {{"zero.param_persistence_threshold_elements", "102400"}, {{"big.shard.parameter", "false"}},
     kZero3},
    {{"zero.param_persistence_threshold_elements", "2047"}, {{"small.shard.parameter", "true"}},
     kZero3},
    {{"zero.model_persistence_threshold_elements", "2047"}, {{"small.shard.parameter", "true"}},
     kZero3},
    {{"zero.max_live_parameters_elements", "9000"}, {{"plan.limits.max_live_elements", "9000"}}},
    {{"zero.max_reuse_distance_elements", "10000"}, {{"plan.limits.max_reuse_distance", "10000"}}},
    {{"tile_elements", "2048"}, {{"plan.limits.tile_elements", "2048"}}},

    {{"offload.optimizer", "cpu"},
     {{"big.tier.optimizer", "pageable"}, {"small.tier.optimizer", "pageable"}, {"large.tier.optimizer", "pageable"}, {"large.tier.gradient", "pinned"},
      {"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"},
      {"plan.updates", "next_step"}}},
    {{"offload.optimizer", "nvme"},
     {{"big.tier.optimizer", "disk"}, {"small.tier.optimizer", "disk"}, {"large.tier.optimizer", "disk"}, {"plan.updates", "next_step"}},
     {{"accumulation", "2"}}},
    {{"offload.parameters", "cpu"},
     {{"big.tier.parameter", "pinned"}, {"large.tier.parameter", "pinned"}}},
    {{"offload.parameters", "nvme"},
     {{"big.tier.parameter", "disk"}, {"large.tier.parameter", "disk"}}},
    // Keeps the rank's half of the first unit in memory, and nothing of the second.
    {{"offload.parameter_host_elements", "51200"}, {{"big.tier.parameter", "pinned"}},
     kParametersOnDisk},
    {{"offload.parameter_host_elements", "51199"}, {}, kParametersOnDisk},
    {{"offload.activations", "cpu"},
     {{"plan.saved [1 3].0.norm", "host"}, {"plan.saved [1 3].1.linear", "host"}, {"plan.saved [1 3].2.gelu", "host"}, {"plan.saved [1 3].4.residual_add", "host"}}},
    {{"offload.activations", "nvme"},
     {{"plan.saved [1 3].0.norm", "disk"}, {"plan.saved [1 3].1.linear", "disk"}, {"plan.saved [1 3].2.gelu", "disk"}, {"plan.saved [1 3].4.residual_add", "disk"}}},
    {{"offload.optimizer_ratio", "0.75"},
     {{"big.resident.device", "25600"}, {"small.resident.device", "1024"}, {"large.resident.device", "51200"}},
     kOptimizerOnDisk},
    {{"offload.optimizer_ratio", "0.75"}, {{"big.resident.device", "13312"}, {"large.resident.device", "25600"}},
     {{"offload.optimizer", "cpu"}, {"zero.stage", "1"}}},
    // A unit whose parameters are on the disk is updated in one place, whatever the ratio.
    {{"offload.optimizer_ratio", "0.75"}, {{"small.resident.device", "1024"}},
     {{"offload.optimizer", "nvme"}, {"offload.parameters", "nvme"}}},
    {{"offload.updates", "step_end"}, {{"plan.updates", "step_end"}}, kOptimizerOnDisk},
    {{"offload.updates", "gradient"}, {{"plan.updates", "gradient"}, {"control.skip_nonfinite", "0"}}},
    {{"offload.layer_major", "true"}, {{"plan.order", "by_layer"}}, {{"accumulation", "2"}}},
    {{"offload.layer_major", "true"}, {}},
    {{"offload.layer_major", "true"},
     {{"plan.order", "by_layer"}, {"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"}, {"large.tier.gradient", "pinned"}},
     {{"accumulation", "2"}, {"offload.optimizer", "cpu"}}},

    {{"offload.gradients", "true"}, {}, {{"accumulation", "2"}}},
    {{"offload.gradients", "true"},
     {{"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"}, {"large.tier.gradient", "pinned"}},
     {{"accumulation", "2"}, {"offload.optimizer", "cpu"}}},

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

    {{"activation_checkpointing", "true"}, 
     {{"plan.saved [1 3].0.norm", "recompute"}, {"plan.saved [1 3].0.norm.1", "recompute"}, {"plan.saved [1 3].1.linear", "recompute"}, {"plan.saved [1 3].2.gelu", "recompute"}}},
    {{"recompute_norms", "true"},
     {{"plan.saved [1 3].0.norm", "recompute"}, {"plan.saved [1 3].0.norm.1", "recompute"}, {"plan.saved [1 3].2.gelu", "recompute"}}},
    {{"recompute_norms", "true"}, {}, kCheckpointing},
    {{"checkpoint_segments", "2"}, 
     {{"plan.saved [1 3].0.norm", ""}, {"plan.saved [1 3].0.norm.1", ""}, {"plan.saved [1 3].1.linear", ""}, {"plan.saved [1 3].2.gelu", ""}, {"plan.saved [1 3].4.residual_add", ""},
      {"plan.saved [1 1].0.norm", "recompute"}, {"plan.saved [1 1].0.norm.1", "recompute"}, {"plan.saved [1 1].1.linear", "recompute"}, {"plan.saved [1 1].2.gelu", "recompute"}, {"plan.saved [1 1].4.residual_add", "keep"},
      {"plan.saved [2 2].0.norm", "recompute"}, {"plan.saved [2 2].0.norm.1", "recompute"}, {"plan.saved [2 2].1.linear", "recompute"}, {"plan.saved [2 2].2.gelu", "recompute"}, {"plan.saved [2 2].4.residual_add", "recompute"},
      {"plan.saved [3 3].0.norm", "recompute"}, {"plan.saved [3 3].0.norm.1", "recompute"}, {"plan.saved [3 3].1.linear", "recompute"}, {"plan.saved [3 3].2.gelu", "recompute"}, {"plan.saved [3 3].4.residual_add", "keep"}},
     kCheckpointing},
    {{"checkpoint_segments", "9"}, {}, kCheckpointing},
    {{"checkpoint_ratio", "0.5"}, {{"plan.saved [1 3].2.gelu", "keep"}}, kCheckpointing},
    {{"actions", R"([{"blocks": [2, 2], "actions": {"2.gelu": "host", "1.linear": "recompute"}}])"},
     {{"plan.saved [1 3].0.norm", ""}, {"plan.saved [1 3].0.norm.1", ""}, {"plan.saved [1 3].1.linear", ""}, {"plan.saved [1 3].2.gelu", ""}, {"plan.saved [1 3].4.residual_add", ""},
      {"plan.saved [0 0].0.embedding", ""}, {"plan.saved [4 4].0.norm.1", ""}, {"plan.saved [4 4].2.head_loss.1", ""},
      {"plan.saved [2 2].1.linear", "recompute"}, {"plan.saved [2 2].2.gelu", "host"}}},
};

/// Options that other code reads: model, data, where Programs run, what is printed and saved.
const std::set<std::string> kElsewhere{
    "autotune", "calibrate", "check_device", "checkpoint.asynchronous", "checkpoint.changed_data",
    "checkpoint.every", "checkpoint.grace_seconds", "checkpoint.keep", "checkpoint.keep_every",
    "checkpoint.on_error", "checkpoint.on_signal", "checkpoint.retry_seconds", "checkpoint.resume", "choices", "data", "device",
    "device_graphs", "dump_state", "eval_data", "eval_every_steps", "global_batch",
    "log_every_seconds", "memory_report", "logs.csv.enabled", "logs.csv.job_name", "logs.csv.output_path", "logs.directory", "logs.report_to",
    "logs.tensorboard.enabled", "logs.tensorboard.job_name", "logs.tensorboard.output_path", "metrics", "model", "nonfinite_steps", "offload.checksums",
    "offload.host_memory_bytes", "offload.nvme_paths", "offload.queue_depth",
    "offload.request_bytes", "on_nonfinite", "output", "plan", "print_config", "print_plan", "print_program", "profile", "reduction",
    "data_is_text", "token_cache", "tokenizer", "checkpoint.strategy", "epochs", "eval_samples", "eval_strategy", "logging_strategy",
    "scheduler.min_lr", "scheduler.warmup_ratio", "target.lossy", "target.memory", "target.offload", "target.strategy", "write_plan",
    "seed", "shuffle", "steps", "steps_per_print", "threads", "trace",
    "trace_steps", "wall_clock_breakdown", "tf32", "checkpoint.overwrite",
};
// clang-format on

/// The values that differ, as they are after; "" if it is gone.
Effects difference(const Effects& before, const Effects& after) {
  Effects changed;
  for (const auto& [name, value] : before)
    if (!after.contains(name)) changed[name] = "";
  for (const auto& [name, value] : after)
    if (!before.contains(name) || before.at(name) != value) changed[name] = value;
  return changed;
}

TEST(OptionEffects, EachOptionChangesWhatItsRowSaysAndNothingElse) {
  for (const Row& row : kRows) {
    std::string what = row.change.first + " " + row.change.second;
    TrainOptions options;
    for (const auto& [name, value] : row.before) {
      set(options, name, value);
      what += ", " + name + " " + value;
    }
    const Effects before = effects_of(options);
    set(options, row.change.first, row.change.second);
    EXPECT_EQ(difference(before, effects_of(options)), row.effects) << what;
  }
}

TEST(OptionEffects, EveryOptionHasARowOrIsReadElsewhere) {
  std::set<std::string> known = kElsewhere;
  for (const Row& row : kRows) {
    EXPECT_FALSE(kElsewhere.contains(row.change.first)) << row.change.first << " stands in both";
    known.insert(row.change.first);
  }
  TrainOptions options;
  for (const OptionField& field : option_fields(options)) {
    EXPECT_EQ(known.erase(std::string(field.name)), 1u)
        << field.name << ": give it a row in kRows that says what it changes, or, if nothing of "
        << "make_plan.h may read it, a place in kElsewhere";
  }
  EXPECT_EQ(known, std::set<std::string>()) << "no options any more";
}

/// Any rule or limit that no option reaches would always keep its default.
TEST(OptionEffects, EveryAttributeOfTheStepIsSetBySomeRow) {
  std::set<std::string> changed;
  for (const Row& row : kRows)
    for (const auto& [name, value] : row.effects) changed.insert(name);
  for (const auto& [name, value] : effects_of({})) {
    const bool is_wired = name.starts_with("control.") || name.starts_with("plan.limits.");
    if (!is_wired || name == "control.leaves")
      continue;  // this one is set where step_control is placed
    EXPECT_TRUE(changed.contains(name)) << name;
  }
}

}  // namespace
}  // namespace strata::train

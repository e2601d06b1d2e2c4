// Checks all kinds of keys of a DeepSpeed JSON: obeyed, accepted with a note, refused with a line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/key_table.h"
#include "train/config/option_fields.h"
#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Obeyed {
  std::string members;  ///< added to a file that has only a micro-batch
  std::string option;
  std::string value;
};

void PrintTo(const Obeyed& row, std::ostream* out) { *out << row.members; }

class ObeyedKeys : public ::testing::TestWithParam<Obeyed> {};

TEST_P(ObeyedKeys, SetTheirOption) {
  const ResolvedConfig resolved = resolve_text(with_batch(GetParam().members));
  EXPECT_EQ(value_of(resolved, GetParam().option), GetParam().value) << GetParam().members;
  EXPECT_NE(resolved.origin_of(GetParam().option), Origin::default_value);
}

std::string adam(const std::string& params, const std::string& type = "AdamW") {
  return R"("optimizer": {"type": ")" + type + R"(", "params": {)" + params + "}}";
}
std::string scheduler(const std::string& type, const std::string& params) {
  return R"("scheduler": {"type": ")" + type + R"(", "params": {)" + params + "}}";
}
std::string zero(const std::string& members) { return "\"zero_optimization\": {" + members + "}"; }

const Obeyed kObeyed[] = {
    {R"("gradient_clipping": 0)", "gradient_clipping", "0.0"},
    {R"("communication_data_type": "fp16")", "communication_dtype", "fp16"},
    {R"("steps_per_print": 10)", "steps_per_print", "10"},
    {R"("wall_clock_breakdown": true)", "wall_clock_breakdown", "true"},
    {R"("strata": {"target_memory": "auto"})", "target.memory", "auto"},
    {R"("autotuning": {"enabled": true, "fast": false})", "target.memory", "auto"},
    {R"("autotuning": {"enabled": true}, "strata": {"target_memory": "8GB"})", "target.memory",
     "8GB"},
    {R"("autotuning": {"enabled": true}, "strata": {"target_memory": "auto"})", "target.memory",
     "auto"},
    {R"("dump_state": true)", "print_config", "true"},
    {R"("data_types": {"grad_accum_dtype": "fp32"})", "accumulation_dtype", "fp32"},
    {R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"})",
     "accumulation_dtype", "bf16"},
    {adam(R"("lr": 2e-5)"), "optimizer.learning_rate", "2e-05"},
    {adam(R"("lr": "3e-4")"), "optimizer.learning_rate", "3e-04"},
    {adam(R"("betas": [0.8, 0.95])"), "optimizer.beta1", "0.8"},
    {adam(R"("betas": [0.8, 0.95])"), "optimizer.beta2", "0.95"},
    {adam(R"("eps": 1e-6)"), "optimizer.epsilon", "1e-06"},
    {adam(R"("weight_decay": 0.1)"), "optimizer.weight_decay", "0.1"},
    {adam(R"("bias_correction": false)"), "optimizer.bias_correction", "false"},
    {adam("", "Adam"), "optimizer.type", "adamw"},
    {adam("", "ADAMW"), "optimizer.type", "adamw"},
    {adam(R"("adam_w_mode": true)", "Adam"), "optimizer.type", "adamw"},
    {adam(R"("adam_w_mode": false)", "Adam"), "optimizer.type", "adam"},
    {adam(R"("adam_w_mode": false)"), "optimizer.type", "adamw"},
    {adam(R"("torch_adam": true)"), "optimizer.weight_decay", "0.01"},
    {adam(R"("torch_adam": true, "weight_decay": 0)"), "optimizer.weight_decay", "0.0"},
    {adam(R"("lr": 0.1, "momentum": 0.9, "nesterov": true)", "SGD"), "optimizer.type", "sgd"},
    {adam(R"("lr": 0.1, "momentum": 0.9, "nesterov": true)", "SGD"), "optimizer.momentum", "0.9"},
    {adam(R"("max_grad_norm": 0.5)"), "gradient_clipping", "0.5"},
    {scheduler("WarmupLR", R"("warmup_num_steps": 10)"), "scheduler.type", "WarmupLR"},
    {scheduler("WarmupLR", R"("warmup_num_steps": 10)"), "scheduler.warmup_max_lr", "0.001"},
    {scheduler("WarmupDecayLR", R"("total_num_steps": 70)"), "scheduler.total_num_steps", "70"},
    {scheduler("WarmupCosineLR", R"("total_num_steps": 70, "cos_min_ratio": 0.1)"),
     "scheduler.cos_min_ratio", "0.1"},
    {scheduler("WarmupLR", R"("warmup_type": "linear")"), "scheduler.warmup_type", "linear"},
    {scheduler("LRRangeTest", R"("lr_range_test_staircase": true)"),
     "scheduler.lr_range_test_staircase", "true"},
    {scheduler("OneCycle",
               R"("cycle_min_lr": 1e-4, "cycle_max_lr": 0.01, "cycle_momentum": false)"),
     "scheduler.cycle_max_lr", "0.01"},
    {R"("fp16": {"enabled": true})", "dtype", "fp16"},
    {R"("bf16": {"enabled": true})", "dtype", "bf16"},
    {R"("bfloat16": {"enabled": true})", "dtype", "bf16"},
    {R"("fp16": {"enabled": true, "loss_scale": 128})", "loss_scale.fixed_scale", "128.0"},
    {R"("fp16": {"enabled": true, "initial_scale_power": 12})", "loss_scale.initial_scale_power",
     "12"},
    {R"("fp16": {"enabled": true, "loss_scale_window": 500})", "loss_scale.window_steps", "500"},
    {R"("fp16": {"enabled": true, "hysteresis": 4})", "loss_scale.hysteresis", "4"},
    {R"("fp16": {"enabled": true, "consecutive_hysteresis": true})",
     "loss_scale.consecutive_hysteresis", "true"},
    {R"("fp16": {"enabled": true, "min_loss_scale": 0.5})", "loss_scale.minimum", "0.5"},
    {R"("bf16": {"enabled": true, "check_grad_overflow": false})", "bf16_check_overflow", "false"},
    {zero(R"("stage": 3)"), "zero.stage", "3"},
    {zero(R"("stage": "2")"), "zero.stage", "2"},
    {zero(R"("stage": true)"), "zero.stage", "1"},
    {R"("zero_optimization": true)", "zero.stage", "1"},
    {R"("zero_optimization": false)", "zero.stage", "0"},
    {zero(R"("reduce_bucket_size": 5e7)"), "zero.reduce_bucket_elements", "50000000"},
    {zero(R"("reduce_bucket_size": 15099494.4)"), "zero.reduce_bucket_elements", "15099494"},
    {zero(R"("allgather_bucket_size": 3)"), "zero.allgather_bucket_elements", "3"},
    {zero(R"("overlap_comm": false)"), "zero.overlap_comm", "false"},
    {zero(R"("sub_group_size": 1e14)"), "zero.sub_group_elements", "100000000000000"},
    {zero(R"("stage3_prefetch_bucket_size": 0)"), "zero.prefetch_bucket_elements", "0"},
    {zero(R"("prefetch_bucket_size": 7)"), "zero.prefetch_bucket_elements", "7"},
    {zero(R"("stage3_param_persistence_threshold": 9)"),
     "zero.param_persistence_threshold_elements", "9"},
    {zero(R"("stage3_model_persistence_threshold": 9223372036854775807)"),
     "zero.model_persistence_threshold_elements", "9223372036854775807"},
    {zero(R"("max_live_parameters": 5)"), "zero.max_live_parameters_elements", "5"},
    {zero(R"("stage3_max_reuse_distance": 5)"), "zero.max_reuse_distance_elements", "5"},
    {R"("strata": {"activation_checkpointing": true})", "activation_checkpointing", "true"},
    {R"("strata": {"activation_checkpointing": {"segments": 3}})", "activation_checkpointing",
     "true"},
    {R"("strata": {"activation_checkpointing": {"segments": 3}})", "checkpoint_segments", "3"},
    {R"("strata": {"activation_checkpointing": true},
        "activation_checkpointing": {"number_checkpoints": 4})",
     "checkpoint_segments", "4"},
    {R"("strata": {"shuffle": false})", "shuffle", "false"},
    {R"("strata": {"no_decay": "none"})", "no_decay", "none"},
    {R"("strata": {"tile_elements": 2048})", "tile_elements", "2048"},
    {R"("strata": {"threads": 3})", "threads", "3"},
};
INSTANTIATE_TEST_SUITE_P(Table, ObeyedKeys, ::testing::ValuesIn(kObeyed));

struct Noted {
  std::string members;
  std::string note;  ///< "": no note
};

void PrintTo(const Noted& row, std::ostream* out) { *out << row.members; }

class NotedKeys : public ::testing::TestWithParam<Noted> {};

TEST_P(NotedKeys, AreAccepted) {
  const ResolvedConfig resolved =
      resolve_text(with_batch("\"gradient_clipping\": 1,\n" + GetParam().members));
  if (GetParam().note.empty()) {
    EXPECT_THAT(lines(resolved.notes), IsEmpty());
  } else {
    EXPECT_THAT(lines(resolved.notes), HasSubstr(GetParam().note));
  }
  EXPECT_THAT(resolved.warnings, IsEmpty());
}

const Noted kNoted[] = {
    {R"("prescale_gradients": false)", ""},
    {R"("prescale_gradients": true)", "ds.json:3: prescale_gradients: accepted, unused"},
    {R"("gradient_predivide_factor": 1)", ""},
    {R"("gradient_allreduce_op": "mean")", ""},
    {R"("sparse_gradients": true)", "sparse_gradients: accepted"},
    {R"("zero_allow_untested_optimizer": true)", ""},
    {R"("optimizer": {"type": "Adam"})", "\"Adam\" is AdamW"},
    {R"("optimizer": {"params": {"lr": 1e-5}})",
     "optimizer.params.lr: obeyed without \"type\" beside \"params\""},
    {R"("optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1}})",
     "params.max_grad_norm: an old spelling of gradient_clipping"},
    {R"("bf16": {"enabled": true, "loss_scale": 1.0, "loss_scale_window": 100})",
     "bf16.loss_scale_window: accepted"},
    {R"("fp16": {"fp16": true, "enabled": true})", "fp16.fp16: accepted"},
    {R"("fp16": {"enabled": true, "opt_level": "O2"})", "fp16.opt_level: accepted"},
    {R"("fp16": {"loss_scale": 0})", "fp16: off: 'enabled' is not set"},
    {R"("zero_optimization": {"stage": 2, "reduce_scatter": false})", "reduce_scatter: accepted"},
    {R"("zero_optimization": {"stage": 2, "reduce_scatter": true, "contiguous_gradients": true,
        "allgather_partitions": true})",
     ""},
    {R"("zero_optimization": {"stage": "3"})", "taken as the number 3"},
    {R"("zero_optimization": {"stage": "auto"})",
     "stage: found \"auto\", taken as 0; give --zero, or --target-memory auto to let it be chosen"},
    {R"("zero_optimization": {"reduce_bucket_size": 1.5})", "rounded down"},
    {R"("zero_optimization": {"stage3_gather_fp16_weights_on_model_save": true})",
     "an old spelling of zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {R"("zero_optimization": {"grad_hooks": true, "cpu_offload": false,
        "offload_param": {"device": "none", "nvme_path": "/x", "buffer_count": "many"}})",
     ""},
    {R"("zero_optimization": {"offload_optimizer": null, "offload_param": {}})", ""},
    {R"("zero_optimization": true)", "an old form"},
    {R"("activation_checkpointing": {"partition_activations": true})",
     "activation_checkpointing: switches nothing on"},
    {R"("activation_checkpointing": {"cpu_checkpointing": true})", "switches nothing on"},
    {R"("comms_logger": {"enabled": false, "verbose": true})", ""},
    {R"("comms_logger": {"enabled": true})", "comms_logger: accepted"},
    {R"("wandb": {"enabled": true})", "tensorboard and csv_monitor are"},
    {R"("tensorboard": {"enabled": true, "output_path": "x"})", ""},
    {R"("csv_monitor": {"enabled": false, "output_path": "x", "job_name": "auto"})", ""},
    {R"("wandb": {"enabled": false, "project": 3})", ""},
    {R"("compression_training": {"layer_reduction": {"enabled": false},
        "weight_quantization": {"shared_parameters": {"enabled": false}}})",
     ""},
    {R"("hybrid_engine": {"enabled": false}, "elasticity": {"enabled": false})", ""},
    {R"("amp": {"enabled": "auto", "opt_level": "auto"}, "nebula": {"enabled": false})", ""},
    {R"("tensor_parallel": {"autotp_size": 1, "tp_overlap_comm": true})", ""},
    {R"("compile": {"disable": false, "backend": "inductor"})", "compile: accepted"},
    {R"("_comment": "mine", "comment_2": [1], "strata": {"_why": 1})", ""},
    {R"("strata": {"reduction": "ordered"})", ""},
    {R"("sequence_parallel_size": 1, "data_parallel_size": 1)", ""},
    {R"("zero_optimization": {"mics_shard_size": -1})", ""},
    {R"("zero_optimization": {"overlap_comm": "auto", "sub_group_size": "auto"})", ""},
};
INSTANTIATE_TEST_SUITE_P(Table, NotedKeys, ::testing::ValuesIn(kNoted));

struct Refused {
  std::string members;  ///< start on line 2 of ds.json
  std::vector<std::string> parts;
};

void PrintTo(const Refused& row, std::ostream* out) { *out << row.members; }

class RefusedKeys : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedKeys, StopWithPathFoundAndExpected) {
  const std::string message = refusal(with_batch(GetParam().members));
  ASSERT_THAT(message, Not(IsEmpty())) << GetParam().members;
  for (const std::string& part : GetParam().parts) EXPECT_THAT(message, HasSubstr(part));
}

const Refused kRefused[] = {
    {R"("zero_optimization": {"stage": 4})",
     {"ds.json:2: zero_optimization.stage: found '4'", "from 0 to 3"}},
    {"\"zero_optimization\": {\n\"stage\": 1.5}", {"ds.json:3: zero_optimization.stage", "1.5"}},
    {R"("zero_optimization": {"reduce_bucket_size": -1})", {"reduce_bucket_size", "at least 0"}},
    {R"("zero_optimization": {"reduce_bucket_size": "big"})", {"reduce_bucket_size", "a number"}},
    {R"("zero_optimization": 3)", {"zero_optimization: found integer 3", "an object"}},
    {R"("zero_optimization": {"zero_quantized_weights": true})", {"zero_quantized_weights"}},
    {R"("zero_optimization": {"zenflow": {"topk_ratio": 0.1}})", {"zenflow: not supported"}},
    {R"("zero_optimization": {"legacy_stage1": true})", {"legacy_stage1"}},
    {R"("zero_optimization": {"mics_shard_size": 4})", {"mics_shard_size: found 4", "-1 or 1"}},
    {R"("data_parallel_size": 4)", {"data_parallel_size: found 4, expected 1"}},
    {R"("sequence_parallel_size": 2)", {"sequence_parallel_size: found 2", "set 1"}},
    {R"("gradient_allreduce_op": "sum")", {"gradient_allreduce_op: found \"sum\"", "\"mean\""}},
    {R"("managed_gradient_accumulation": false)", {"managed_gradient_accumulation"}},
    {R"("communication_data_type": "int8")", {"'int8'", "fp32, bf16, fp16"}},
    {R"("data_types": {"grad_accum_dtype": "bf16"})",
     {"data_types.grad_accum_dtype: found bf16", "expected fp32 or the type produced, fp32"}},
    {R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp16"})",
     {"data_types.grad_accum_dtype: found fp16", "the type produced, bf16"}},
    {R"("data_types": {"param_dtype": "bf16"})", {"param_dtype: found bf16, expected fp32"}},
    {R"("fp16": {"enabled": true}, "bf16": {"enabled": true})",
     {"bf16.enabled: found true beside ds.json:2: fp16.enabled"}},
    {R"("fp16": {"enabled": CONFIG})", {"ds.json:2"}},
    {R"("fp16": {"enabled": "CONFIG_FP16_ENABLED"})", {"fp16.enabled", "unfilled template token"}},
    {R"("fp16": {"enabled": true, "min_loss_scale": 0})", {"fp16.min_loss_scale"}},
    {R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true})", {"fp32; set false"}},
    {R"("bf16": {"enabled": true, "bf16_optimizer_states": true})",
     {"set false", R"("state_recipe": "bf16-moments")"}},
    {R"("strata": {"state_recipe": "8-bit"})",
     {"strata.state_recipe: found '8-bit'", "packed-bf16-moments, 8bit, bf16-sr"}},
    {R"("strata": {"state_recipe": "packed-master"})",
     {"strata.state_recipe: found packed-master, which needs dtype bf16, not fp32"}},
    {R"("bf16": {"enabled": true, "loss_scale": 128})", {"bf16.loss_scale: found 128"}},
    {R"("bf16": {"enabled": true}, "bfloat16": {"enabled": false})",
     {"bfloat16.enabled", "contradicts ds.json:2: bf16.enabled"}},
    {R"("optimizer": {"type": "Lamb"})",
     {"optimizer.type: found 'Lamb'", "Adam, AdamW, SGD, Lion"}},
    {R"("optimizer": {"type": "AdamX"})", {"did you mean 'Adam'?"}},
    {R"("optimizer": {"type": "OneBitAdam", "params": {"lr": 1}})", {"'OneBitAdam'"}},
    {R"("optimizer": {"type": "AdamW", "params": {"amsgrad": true}})", {"params.amsgrad"}},
    {R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9]}})", {"betas", "expected two"}},
    {R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9, "x"]}})", {"betas[1]"}},
    {R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1]}})", {"betas: found '1'"}},
    {R"("optimizer": {"type": "SGD", "params": {"nesterov": true}})", {"nesterov needs"}},
    {R"("gradient_clipping": 1, "optimizer": {"type": "AdamW", "params": {"max_grad_norm": 2}})",
     {"params.max_grad_norm: found 2, which contradicts ds.json:2: gradient_clipping: 1"}},
    {R"("scheduler": {"type": "WarmupDecayLR"})", {"needs scheduler.params.total_num_steps"}},
    {R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1}})",
     {"\"cycle_momentum\": false"}},
    {R"("scheduler": {"type": "StepLR"})", {"'StepLR'", "WarmupLR, WarmupDecayLR"}},
    {R"("scheduler": {"params": {"warmup_num_steps": 3}})", {"without scheduler.type"}},
    {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}})",
     {"'cubic'", "log, linear"}},
    {R"("gradient_clipping": -1)", {"gradient_clipping: found '-1'"}},
    {R"("gradient_clipping": "high")", {"gradient_clipping", "expected a number"}},
    {R"("steps_per_print": "auto")", {"steps_per_print: \"auto\" needs --steps-per-print N"}},
    {R"("amp": {"enabled": true})",
     {"amp: not supported; DeepSpeed has removed it, too; use bf16"}},
    {R"("torch_autocast": {"enabled": true})", {"torch_autocast"}},
    {R"("compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}}})",
     {"compression_training: not supported"}},
    {R"("sparse_attention": {"mode": "fixed"})", {"sparse_attention", "attention is dense"}},
    {R"("data_efficiency": {"enabled": true, "data_routing": {"enabled": true,
        "random_ltd": {"enabled": true}}})",
     {"data_efficiency.data_routing.random_ltd"}},
    {R"("elasticity": {"enabled": true})", {"elasticity"}},
    {R"("tensor_parallel": {"autotp_size": 4})", {"tensor_parallel.autotp_size: found 4"}},
    {R"("strata": {"shufle": true})", {"strata.shufle: unknown key, did you mean 'shuffle'?"}},
    {R"("strata": {"reduction": "fast"})", {"strata.reduction: found 'fast'", "ordered, native"}},
    {R"("strata": {"tile_elements": 1500})", {"tile_elements", "multiple of 1024"}},
    {R"("train_micro_batch_size_per_gpu": 3)", {"train_micro_batch_size_per_gpu", "2"}},
    {R"("gradient_accumulation_steps": 0)", {"gradient_accumulation_steps: found '0'", "from 1"}},
};
INSTANTIATE_TEST_SUITE_P(Table, RefusedKeys, ::testing::ValuesIn(kRefused));

// Fault 27.
TEST(DeepSpeedJson, AllProblemsAreReportedAtOnceWithTheirLines) {
  const std::string message = refusal(R"({
    "train_micro_batch_size_per_gpu": 1, // comment
    "zero_optimization": {"stage": 9,
      "offload_optimizer": {"device": "cup"}}, # another
    "optimizer": {"type": "Lamb", "params": {"lr": "fast"}},
  })");
  EXPECT_THAT(message, HasSubstr("ds.json:3: zero_optimization.stage"));
  EXPECT_THAT(message, HasSubstr("ds.json:4: zero_optimization.offload_optimizer.device"));
  EXPECT_THAT(message, HasSubstr("ds.json:5: optimizer.type"));
  EXPECT_THAT(message, HasSubstr("ds.json:5: optimizer.params.lr"));
}

TEST(DeepSpeedJson, UnknownKeysWarnWithTheNearestName) {
  const std::string json = with_batch(R"("zero_optimisation": {"stage": 2},
    "zero_optimization": {"stge": 1}, "gradient_accumulation_steps ": 4, "reduce_bucket_size": 5)");
  const std::string warnings = lines(resolve_text(json).warnings);
  EXPECT_THAT(warnings, HasSubstr("ds.json:2: zero_optimisation: unknown key, did you mean "
                                  "'zero_optimization'?"));
  EXPECT_THAT(warnings, HasSubstr("zero_optimization.stge: unknown key, did you mean 'stage'?"));
  EXPECT_THAT(warnings, HasSubstr("did you mean 'gradient_accumulation_steps'?"));
  EXPECT_THAT(warnings, HasSubstr("did you mean 'zero_optimization.reduce_bucket_size'?"));
  const std::string strict = refusal(json, {"--strict-config"});
  EXPECT_THAT(strict, HasSubstr("zero_optimisation: unknown key"));
}

TEST(DeepSpeedJson, NamesOfFlagsAreKnownToBeKeys) {
  const std::pair<std::string, std::string> kNames[] = {
      {"learning_rate", "'optimizer.params.lr', or --learning-rate X?"},
      {"max_steps", "'strata.steps', or --steps N?"},
      {"zero_stage", "'zero_optimization.stage', or --zero 0|1|2|3?"},
      {"num_train_epochs", "'strata.epochs', or --epochs X?"},
      {"per_device_train_batch_size",
       "'train_micro_batch_size_per_gpu' at the top level, or --micro-batch N?"},
      {"lr_scheduler_type", "'scheduler.type', or --scheduler TYPE?"},
      {"dtype", "the flag --dtype fp32|bf16|fp16|auto?"},
      {"gradient_checkpointing",
       "'strata.activation_checkpointing', or --activation-checkpointing [BOOL]?"},
      {"activation-checkpointing",
       "'strata.activation_checkpointing', or --activation-checkpointing [BOOL]?"},
      {"data", "the flag --data FILE...?"},
      {"steps", "'strata.steps', or --steps N?"},
      {"zero", "'zero_optimization.stage', or --zero 0|1|2|3?"},
      {"checkpoint_ratio", "'strata.activation_checkpointing.ratio', or --checkpoint-ratio X?"},
      {"cpu_optimizer",
       "'zero_optimization.offload_optimizer.device', or --offload-optimizer none|cpu|nvme?"},
  };
  for (const auto& [key, meant] : kNames)
    EXPECT_EQ(lines(resolve_text(with_batch("\"" + key + "\": 1")).warnings),
              "ds.json:2: " + key + ": unknown key, did you mean " + meant + "\n");
  EXPECT_EQ(lines(resolve_text(with_batch(adam(R"("learning_rate": 1e-4)"))).warnings),
            "ds.json:2: optimizer.params.learning_rate: unknown key, did you mean "
            "'optimizer.params.lr', or --learning-rate X?\n");
  EXPECT_EQ(lines(resolve_text(with_batch(adam(R"("gradient_accumulation_steps": 2)"))).warnings),
            "ds.json:2: optimizer.params.gradient_accumulation_steps: unknown key, did you mean "
            "'gradient_accumulation_steps' at the top level, or --accumulation N?\n");
}

struct Misspelt {
  std::string members;
  std::string warning;
};

void PrintTo(const Misspelt& row, std::ostream* out) { *out << row.members; }

class KeysOfSectionsThatAreOff : public ::testing::TestWithParam<Misspelt> {};

TEST_P(KeysOfSectionsThatAreOff, WarnIfTheirNamesAreUnknown) {
  const std::string json = with_batch(GetParam().members);
  EXPECT_EQ(lines(resolve_text(json).warnings), "ds.json:2: " + GetParam().warning + "\n");
  EXPECT_THAT(refusal(json, {"--strict-config"}), HasSubstr(GetParam().warning));
}

const Misspelt kMisspelt[] = {
    {R"("bf16": {"enable": true})", "bf16.enable: unknown key, did you mean 'enabled'?"},
    {R"("bfloat16": {"enable": true})", "bfloat16.enable: unknown key, did you mean 'enabled'?"},
    {R"("fp16": {"enabeld": true})", "fp16.enabeld: unknown key, did you mean 'enabled'?"},
    {R"("fp16": {"enabled": false, "loss_scle": 3})",
     "fp16.loss_scle: unknown key, did you mean 'loss_scale'?"},
    {R"("zero_optimization": {"stage": 2, "offload_optimizer": {"devcie": "cpu"}})",
     "zero_optimization.offload_optimizer.devcie: unknown key, did you mean 'device'?"},
    {R"("tensorboard": {"enable": true, "output_path": "runs"})",
     "tensorboard.enable: unknown key, did you mean 'enabled'?"},
    // Sections whose other keys are not looked at.
    {R"("wandb": {"enable": true, "project": "mine"})",
     "wandb.enable: unknown key, did you mean 'enabled'?"},
    {R"("elasticity": {"Enabled": true, "max_train_batch_size": 2000})",
     "elasticity.Enabled: unknown key, did you mean 'enabled'?"},
    {R"("autotuning": {"enable": true, "fast": false})",
     "autotuning.enable: unknown key, did you mean 'enabled'?"},
    {R"("data_efficiency": {"enabled": false, "data_sampling": {"enable": true, "seed": 1}})",
     "data_efficiency.data_sampling.enable: unknown key, did you mean 'enabled'?"},
};
INSTANTIATE_TEST_SUITE_P(Table, KeysOfSectionsThatAreOff, ::testing::ValuesIn(kMisspelt));

TEST(DeepSpeedJson, ValuesOfSectionsThatAreOffAreNotLookedAt) {
  const std::string json = with_batch(
      R"("fp16": {"enabled": false, "loss_scale": "high", "_why": 1},
         "nebula": {"enable_nebula_load": true},
         "compression_training": {"a": {"enabled": false}})");
  EXPECT_EQ(refusal(json, {"--strict-config"}), "");
  EXPECT_THAT(resolve_text(json).warnings, IsEmpty());
}

TEST(DeepSpeedJson, ParametersOfAnotherTypeWarn) {
  const ResolvedConfig resolved = resolve_text(with_batch(
      R"("optimizer": {"type": "AdamW", "params": {"momentum": 0.9}},
         "scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}})"));
  EXPECT_THAT(lines(resolved.warnings), HasSubstr("params.momentum: has no effect with AdamW"));
  EXPECT_THAT(lines(resolved.warnings), HasSubstr("total_num_steps: has no effect with WarmupLR"));
}

// Fault 27.
TEST(DeepSpeedJson, RepeatedKeysAndBrokenTextAreRefusedWithTheLine) {
  EXPECT_THAT(refusal("{\"a\": 1,\n\"a\": 2}"),
              HasSubstr("ds.json:1: a is given 2 times (lines 1, 2)"));
  EXPECT_THAT(refusal("{\n\"a\" 1}"), StartsWith("ds.json:2"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("expected an object"));
}

TEST(DeepSpeedJson, APlanIsNamedAsOne) {
  EXPECT_EQ(refusal(R"({"version": 5, "budget_bytes": {}, "units": []})"),
            "ds.json: this is a Plan; give it as --plan, not as --config");
}

TEST(DeepSpeedJson, Base64IsReadLikeAFile) {
  // {"train_batch_size": 6, "x": "??>"} in both alphabets
  for (const char* text : {"eyJ0cmFpbl9iYXRjaF9zaXplIjogNiwgIngiOiAiPz8+In0=",
                           "eyJ0cmFpbl9iYXRjaF9zaXplIjogNiwgIngiOiAiPz8-In0"}) {
    const DeepSpeedSettings read = read_deepspeed_json(text, false);
    EXPECT_EQ(read.settings.at("global_batch").words[0], "6");
    EXPECT_THAT(lines(read.findings.warnings), HasSubstr("base64 configuration:1: x"));
  }
  EXPECT_THROW(read_deepspeed_json("/no/such/file.json", false), ConfigError);
}

TEST(KeyTable, TargetsExist) {
  TrainOptions options;
  const std::vector<OptionField> fields = option_fields(options);
  for (const KeyRow& row : key_table()) {
    SCOPED_TRACE(row.path);
    if (row.support == Support::alias || row.support == Support::renamed) {
      ASSERT_NE(find_key(row.target), nullptr);
      EXPECT_EQ(find_key(row.target)->path, row.target);
    } else if (row.support == Support::obeyed && row.shape != JsonShape::section) {
      const std::string_view first = row.target.substr(0, row.target.find('+'));
      EXPECT_NE(find_field(fields, first), nullptr);
    }
    const std::size_t dot = row.path.rfind('.');
    if (dot != std::string_view::npos) {
      ASSERT_NE(find_key(row.path.substr(0, dot)), nullptr);
      EXPECT_EQ(find_key(row.path.substr(0, dot))->shape, JsonShape::section);
    }
    int same = 0;
    for (const KeyRow& other : key_table()) same += other.path == row.path;
    EXPECT_EQ(same, 1);
  }
}

}  // namespace
}  // namespace strata::train

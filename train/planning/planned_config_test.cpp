// Checks that a run of a written file alone has the settings that were planned.
#include "train/planning/planned_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "train/config/make_plan.h"
#include "train/config/testing/settled_options.h"
#include "train/planning/planned_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 2;
constexpr const char* kActions =
    R"([{"blocks": [1, 2], "actions": {"0.norm": "recompute", "2.gelu": "host"}}])";
constexpr const char* kDiskActions = R"([{"blocks": [1, 1], "actions": {"2.gelu": "disk"}}])";

/// Expects that every option has the same value if nothing but the written file is given.
void expect_repeated(const ResolvedConfig& planned, const StoredModel& stored = {}) {
  const std::string text = planned_config(planned);
  SCOPED_TRACE(text);
  const ResolvedConfig again = resolve(flags({}), parse_deepspeed_json(text, "ds.json", true),
                                       kRanks, small_model(), stored);
  for (const ResolvedField& field : planned.fields)
    EXPECT_EQ(value_of(again, field.name), field.value) << field.name;
}

TEST(PlannedConfig, RepeatsEveryFlagThatShapesPrograms) {
  const std::vector<std::vector<std::string>> given{
      {},
      {"--dtype", "bf16", "--state-recipe", "8bit"},
      {"--dtype", "bf16", "--optim", "adamw_8bit"},
      {"--dtype", "fp16", "--loss-scale-window", "50", "--min-loss-scale", "2"},
      {"--dtype", "fp16", "--loss-scale", "128"},
      {"--dtype", "bf16", "--communication-dtype", "fp32"},
      {"--communication-dtype", "bf16"},
      {"--optimizer", "lion"},
      {"--optimizer", "adam", "--adam_beta1", "0.8", "--weight-decay", "0.1"},
      {"--optimizer", "sgd", "--momentum", "0.9", "--learning-rate", "0.5"},
      {"--learning-rate", "3e-4", "--epsilon", "1e-6", "--no-decay", "none"},
      {"--gradient-clipping", "0", "--offload-optimizer", "cpu", "--update-time", "gradient"},
      {"--offload-optimizer", "cpu", "--offload-ratio", "0.5", "--update-time", "step_end"},
      {"--reduction", "native"},
      {"--virtual-ranks", "4"},
      {"--zero", "3", "--param-persistence-threshold", "0", "--prefetch", "7",
       "--max-live-parameters", "900", "--reduce-bucket", "800", "--overlap-comm", "false"},
      {"--tile-elements", "2048", "--threads", "3", "--device", "cpu", "--tf32"},
      {"--global-batch", "24", "--accumulation", "3", "--layer-major", "--sequence-length", "64"},
      {"--activation-checkpointing", "--checkpoint-ratio", "0.25", "--offload-activations", "cpu"},
      {"--activation-checkpointing", "--checkpoint-segments", "1", "--recompute-norms"},
      {"--actions", kActions},
      {"--actions", kDiskActions, "--nvme-path", "/a"},
      {"--offload-optimizer", "nvme", "--offload-param", "nvme", "--nvme-path", "/a,/b",
       "--checksum-swap", "false"},
      {"--offload-param", "nvme", "--nvme-path", "/a", "--device-memory", "3GB", "--host-memory",
       "5GiB"},
  };
  for (const std::vector<std::string>& words : given) expect_repeated(resolve_flags(words, kRanks));
}

TEST(PlannedConfig, RepeatsWhatAFileGave) {
  for (const char* members :
       {R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"})",
        R"("bf16": {"enabled": true, "check_grad_overflow": false})",
        R"("zero_optimization": {"stage": 3, "sub_group_size": 7000, "allgather_bucket_size": 6000,
           "stage3_max_reuse_distance": 5, "stage3_model_persistence_threshold": 10})",
        R"("zero_optimization": {"stage": "auto", "reduce_bucket_size": "auto",
           "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"})",
        R"("zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/a",
           "max_in_cpu": 9000}}, "aio": {"block_size": 2097152, "queue_depth": 16})",
        R"("fp16": {"enabled": true, "initial_scale_power": 8, "hysteresis": 3,
           "consecutive_hysteresis": true})",
        R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.95], "eps": 1e-7,
           "bias_correction": false}})",
        R"("optimizer": {"type": "SGD", "params": {"momentum": 0.5, "nesterov": true}})",
        R"("scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 0.002,
           "warmup_num_steps": 3, "warmup_type": "linear", "total_num_steps": 9}},
           "steps_per_print": 5, "csv_monitor": {"enabled": true, "output_path": "logs"},
           "strata": {"seed": 42, "shuffle": false, "on_nonfinite": "skip"})",
        R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1,
           "cycle_momentum": false, "cycle_first_step_size": 5}})"})
    expect_repeated(resolve_text(with_batch(members), {}, kRanks));
}

TEST(PlannedConfig, KeepsTheMinimumThatAFlagGivesWarmupCosine) {
  const ResolvedConfig planned = resolve_text(
      with_batch(R"("scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9}})"),
      {"--min-lr", "1e-4"}, kRanks);
  const std::string text = planned_config(planned);
  EXPECT_THAT(text, HasSubstr("\"cos_min_ratio\": 0.1"));
  const TrainOptions again = resolve_text(text, {}, kRanks).options;
  EXPECT_EQ(control_attributes(again), control_attributes(planned.options));
}

TEST(PlannedConfig, RepeatsWhatWasPlanned) {
  ResolvedConfig config = resolve_flags(
      {"--global-batch", "8", "--dtype", "bf16", "--nvme-path", "/a", "--target-memory", "24GB"},
      kRanks);
  set_planned({{"zero.stage", "2"},
               {"micro_batch", "1"},
               {"accumulation", "4"},
               {"offload.layer_major", "true"},
               {"offload.optimizer", "nvme"},
               {"offload.optimizer_ratio", "0.75"},
               {"offload.parameters", "cpu"},
               {"offload.host_memory_bytes", "9GB"},
               {"actions", kActions}},
              config);
  EXPECT_THAT(planned_config(config), Not(HasSubstr("target")));  // that would plan again
  for (ResolvedField& field : config.fields)
    if (field.name == "target.memory") field.value = "";
  expect_repeated(config);
}

TEST(PlannedConfig, KeepsFp32WhereWeightsAreStoredInAnotherType) {
  const StoredModel stored{.has_weights = true, .name = "m", .dtype = DType::bf16};
  const ResolvedConfig asked = resolve(flags({"--dtype", "fp32"}), kRanks, small_model(), stored);
  EXPECT_EQ(value_of(asked, "dtype"), "fp32");
  expect_repeated(asked, stored);
  expect_repeated(resolve(flags({}), kRanks, small_model(), stored), stored);
}

TEST(PlannedConfig, LeavesStoredWeightsTheirLearningRate) {
  const StoredModel stored{.has_weights = true, .name = "m", .dtype = DType::bf16};
  const std::vector<std::string> words{"--optim", "adamw_8bit",     "--dtype",
                                       "bf16",    "--weight-decay", "0.1"};
  const std::string text = planned_config(resolve_flags(words, kRanks));  // planned without weights
  const ResolvedConfig run = resolve(flags({}), parse_deepspeed_json(text, "ds.json", true), kRanks,
                                     small_model(), stored);
  const ResolvedConfig typed = resolve(flags(words), kRanks, small_model(), stored);
  for (const char* option : {"optimizer.learning_rate", "optimizer.weight_decay", "state_recipe"})
    EXPECT_EQ(value_of(run, option), value_of(typed, option)) << text;
}

TEST(PlannedConfig, LeavesTheLearningRateOpenThatAFileLeavesToFlags) {
  ParsedCommandLine line = flags({});
  line.chooses = true;
  const std::string json =
      with_batch(R"("optimizer": {"type": "AdamW", "params": {"lr": "auto"}})");
  const ResolvedConfig planned =
      resolve(line, parse_deepspeed_json(json, "ds.json", true), kRanks, small_model());
  EXPECT_THAT(refusal(planned_config(planned), {}, kRanks),
              HasSubstr("optimizer.params.lr: \"auto\" needs --learning-rate X"));
}

TEST(PlannedConfig, SaysHowLongARunIsAndLeavesFilesToFlags) {
  for (const auto& words :
       {std::vector<std::string>{"--steps", "9"}, {"--epochs", "2.5"}, {"--steps", "-1"}})
    expect_repeated(resolve_flags(words, kRanks));
  const ResolvedConfig config = resolve_flags(
      {"--output", "out", "--save-every", "5", "--eval-data", "held", "--steps", "0"}, kRanks);
  EXPECT_EQ(planned_config(config), planned_config(resolve_flags({}, kRanks)));
}

}  // namespace
}  // namespace strata::train

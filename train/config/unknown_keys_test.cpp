// Checks what is said of keys of a DeepSpeed JSON that are unknown, or of sections that are off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(UnknownKeys, WarnWithTheNearestName) {
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

std::string adam_warnings(const std::string& params) {
  const std::string optimizer = R"("optimizer": {"type": "AdamW", "params": {)" + params + "}}";
  return lines(resolve_text(with_batch(optimizer)).warnings);
}

TEST(UnknownKeys, ThatAreSpeltLikeAKeyOfTheirSectionMeanIt) {
  const auto warning = [](const std::string& members) {
    return lines(resolve_text(with_batch(members)).warnings);
  };
  EXPECT_THAT(warning(R"("zero_optimization": {"stage": 2, "offload_optimizer":
                         {"device": "cpu", "nvme-path": "/tmp"}})"),
              HasSubstr("nvme-path: unknown key, did you mean 'nvme_path'?"));
  EXPECT_THAT(warning(R"("activation-checkpointing": {"partition_activations": false})"),
              HasSubstr("unknown key, did you mean 'activation_checkpointing'?"));
  EXPECT_THAT(warning(R"("activation-checkpointing": true)"),
              HasSubstr("unknown key, did you mean 'strata.activation_checkpointing'"));
}

TEST(UnknownKeys, MayBeNamesOfFlags) {
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
  EXPECT_EQ(adam_warnings(R"("learning_rate": 1e-4)"),
            "ds.json:2: optimizer.params.learning_rate: unknown key, did you mean "
            "'optimizer.params.lr', or --learning-rate X?\n");
  EXPECT_EQ(adam_warnings(R"("gradient_accumulation_steps": 2)"),
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

TEST(UnusedKeys, ValuesOfSectionsThatAreOffAreNotLookedAt) {
  const std::string json = with_batch(
      R"("fp16": {"enabled": false, "loss_scale": "high", "_why": 1},
         "nebula": {"enable_nebula_load": true},
         "compression_training": {"a": {"enabled": false}})");
  EXPECT_EQ(refusal(json, {"--strict-config"}), "");
  EXPECT_THAT(resolve_text(json).warnings, IsEmpty());
}

TEST(UnusedKeys, ParametersOfAnotherTypeWarn) {
  const ResolvedConfig resolved = resolve_text(with_batch(
      R"("optimizer": {"type": "AdamW", "params": {"momentum": 0.9}},
         "scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}})"));
  EXPECT_THAT(lines(resolved.warnings), HasSubstr("params.momentum: has no effect with AdamW"));
  EXPECT_THAT(lines(resolved.warnings), HasSubstr("total_num_steps: has no effect with WarmupLR"));
}

}  // namespace
}  // namespace strata::train

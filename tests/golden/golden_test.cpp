// Compares the product with transformers in float64: logits, loss, gradients, training and written
// model directories, for every folder beside README.md.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/test_directory.h"
#include "tests/golden/golden_checks.h"
#include "tests/golden/golden_run.h"
#include "tests/golden/model_logits.h"
#include "train/models/hf_config.h"

namespace strata::tests {

namespace {

constexpr double kSixteenBitTolerance = 2e-2;
constexpr double kWorldTolerance = 1e-6;  // two ranks against one

/// A way to run the same step.
struct Way {
  const char* name;
  int world, stage, accumulation;
  bool recompute;
};
constexpr Way kOneRank{"one rank", 1, 0, 1, false};
constexpr Way kTwoRanks{"two ranks, stage 3", 2, 3, 1, false};
constexpr Way kWays[] = {kOneRank,
                         {"accumulation of 2", 1, 0, 2, false},
                         {"recomputed layers", 1, 0, 1, true},
                         {"two ranks, stage 1", 2, 1, 1, false},
                         kTwoRanks};

class Golden : public testing::TestWithParam<GoldenCase> {
 protected:
  [[nodiscard]] std::vector<double> doubles(const std::string& name) const {
    return read_doubles(values_, name);
  }

  [[nodiscard]] std::vector<std::vector<std::int32_t>> adamw_batches() const {
    return training_batches(values_);
  }

  [[nodiscard]] GoldenRun golden_run(std::vector<std::vector<std::int32_t>> batches, int steps,
                                     const Way& way = kOneRank) const {
    GoldenRun run;
    run.model = GetParam().directory;
    run.batches = std::move(batches);
    run.steps = steps;
    run.world = way.world;
    run.stage = way.stage;
    run.accumulation = way.accumulation;
    run.recompute = way.recompute;
    return run;
  }

  [[nodiscard]] std::vector<double> logits(DType dtype) const {
    return model_logits(GetParam().directory, dtype, read_ids(values_, "input_ids"),
                        values_.at("input_ids").shape.at(1));
  }

  const train::ModelFiles values_{GetParam().values};
};

TEST_P(Golden, LogitsOfAllPositions) {
  EXPECT_LE(relative_difference(logits(DType::f32), doubles("logits")), kGoldenTolerance);
}

TEST_P(Golden, LogitsInSixteenBitTypes) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    const double difference = relative_difference(logits(dtype), doubles("logits"));
    EXPECT_LE(difference, kSixteenBitTolerance) << name_of(dtype);
    EXPECT_GT(difference, kGoldenTolerance) << name_of(dtype) << " was not used";
  }
}

TEST_P(Golden, LossAndGradients) {
  const Tensors golden = without_key_bias(read_tensors(values_, "grad."));
  const double loss = doubles("loss").at(0), norm = norm_of(golden);
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const GoldenResult result = run_golden(golden_run({one_batch(values_)}, 1, way));
    EXPECT_NEAR(result.losses.at(0), loss, loss * kGoldenTolerance);
    EXPECT_NEAR(result.evaluation, loss, loss * kGoldenTolerance);
    EXPECT_NEAR(result.gradient_norms.at(0), norm, norm * kGoldenTolerance);
    EXPECT_TRUE(agree(without_key_bias(result.gradients), golden, kGoldenTolerance));
  }
}

TEST_P(Golden, ThirtyStepsOfAdamW) {
  const std::vector<double> losses = doubles("adamw.losses");
  const Tensors golden = without_key_bias(read_tensors(values_, "final."));
  ASSERT_EQ(losses.size(), kGoldenSteps);
  for (const Way& way : {kOneRank, kTwoRanks}) {
    SCOPED_TRACE(way.name);
    const GoldenResult result = run_golden(golden_run(adamw_batches(), kGoldenSteps, way));
    expect_trained(result, losses, golden, kTrainedTolerance);
  }
}

TEST_P(Golden, TwoRanksAtStage3LoseWhatOneRankLoses) {
  const GoldenResult one = run_golden(golden_run(adamw_batches(), kGoldenSteps));
  const GoldenResult two = run_golden(golden_run(adamw_batches(), kGoldenSteps, kTwoRanks));
  ASSERT_EQ(one.losses.size(), two.losses.size());
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(two.losses[step], one.losses[step], one.losses[step] * kWorldTolerance)
        << "step " << step;
  EXPECT_NEAR(two.evaluation, one.evaluation, one.evaluation * kWorldTolerance);
}

/// Reads a directory's weights under the names that Strata writes, without GPT-2's causal masks.
Tensors stored_weights(const std::string& directory, const std::string& prefix) {
  Tensors weights;
  for (auto& [name, values] : read_tensors(train::ModelFiles(directory), "")) {
    if (name.ends_with(".attn.bias")) continue;
    const bool whole = name.starts_with(prefix) || name.starts_with("lm_head.");
    weights[whole ? name : prefix + name] = std::move(values);
  }
  return weights;
}

TEST_P(Golden, WrittenDirectoryHoldsWhatWasRead) {
  const TestDirectory folder;
  const std::string prefix(train::read_model_config(GetParam().directory).family->prefix);
  GoldenRun run = golden_run({one_batch(values_)}, 0);
  run.save = folder / "written";
  const GoldenResult result = run_golden(run);
  EXPECT_TRUE(same_bytes(stored_weights(saved_checkpoint(run), prefix), result.parameters));
  EXPECT_TRUE(same_bytes(stored_weights(GetParam().directory, prefix), result.parameters));
}

TEST_P(Golden, TrainedDirectoryIsReadBackTheSame) {
  for (const Way& way : {kOneRank, kTwoRanks}) {
    SCOPED_TRACE(way.name);
    const TestDirectory folder;
    GoldenRun run = golden_run(adamw_batches(), 2, way);
    run.save = folder / "written";
    const GoldenResult trained = run_golden(run);
    GoldenRun again = golden_run(adamw_batches(), 0);
    again.model = saved_checkpoint(run);
    const GoldenResult read = run_golden(again);
    EXPECT_TRUE(same_bytes(read.parameters, trained.parameters));
    EXPECT_FALSE(
        same_bytes(read.parameters, run_golden(golden_run(adamw_batches(), 0)).parameters));
    EXPECT_EQ(train::to_hf_config_json(train::read_model_config(saved_checkpoint(run)), ""),
              train::to_hf_config_json(train::read_model_config(run.model), ""));
  }
}

struct OptimizerCase {
  const char* name;
  train::OptimizerOptions options;
};

/// Returns the optimizers of optimizers.safetensors (README.md).
std::vector<OptimizerCase> optimizer_cases() {
  train::OptimizerOptions sgd;
  sgd.type = train::OptimizerType::sgd;
  sgd.learning_rate = 0.1;
  sgd.weight_decay = 0.1;
  train::OptimizerOptions momentum = sgd;
  momentum.learning_rate = 0.05;
  momentum.momentum = 0.9;
  momentum.dampening = 0.5;
  train::OptimizerOptions nesterov = sgd;
  nesterov.learning_rate = 0.02;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  train::OptimizerOptions adam = golden_adamw();
  adam.type = train::OptimizerType::adam;
  return {{"sgd", sgd}, {"momentum", momentum}, {"nesterov", nesterov}, {"adam", adam}};
}

TEST(GoldenOptimizers, TenSteps) {
  const std::vector<GoldenCase> cases = golden_cases();
  const auto llama = std::ranges::find(cases, "llama", &GoldenCase::name);
  ASSERT_NE(llama, cases.end());
  const train::ModelFiles batches(llama->values);
  const train::ModelFiles values(llama->directory + "/optimizers.safetensors");
  for (const OptimizerCase& optimizer : optimizer_cases()) {
    const std::string prefix = optimizer.name + std::string(".");
    const std::vector<double> losses = read_doubles(values, prefix + "losses");
    const Tensors parameters = read_tensors(values, prefix + "final.");
    ASSERT_EQ(losses.size(), 10U);
    for (const Way& way : kWays) {
      SCOPED_TRACE(prefix + " " + way.name);
      GoldenRun run;
      run.model = llama->directory;
      run.batches = training_batches(batches);
      run.steps = static_cast<int>(losses.size());
      run.world = way.world;
      run.stage = way.stage;
      run.accumulation = way.accumulation;
      run.recompute = way.recompute;
      run.optimizer = optimizer.options;
      expect_trained(run_golden(run), losses, parameters, kGoldenTolerance);
    }
  }
}

TEST(GoldenMasks, TheMeanIsOverTheTargetsOfTheWholeStep) {
  auto [run, losses, parameters] = masked_run();
  for (const Way& way :
       {kOneRank, Way{"accumulation of 4", 1, 0, 4, false}, Way{"2 x 2, stage 0", 2, 0, 2, false},
        Way{"2 x 2, stage 3", 2, 3, 2, true}, Way{"four ranks", 4, 1, 1, false}}) {
    SCOPED_TRACE(way.name);
    run.world = way.world;
    run.stage = way.stage;
    run.accumulation = way.accumulation;
    run.recompute = way.recompute;
    const GoldenResult result = run_golden(run);
    EXPECT_NEAR(result.evaluation, losses.at(0), losses.at(0) * kGoldenTolerance);
    expect_trained(result, losses, parameters, kGoldenTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(golden_cases()), [](const auto& given) {
  std::string name = given.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace strata::tests

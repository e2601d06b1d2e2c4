// Design section 5, "Same bits", for every optimizer and every type in which gradients are added
// up: losses and state do not depend on the stage.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/training/ranks.h"
#include "train/config/make_plan.h"

namespace strata::tests {
namespace {

using train::OptimizerType;
using train::StateRecipe;

struct OptimizerCase {
  const char* name;
  train::OptimizerOptions options;
};

std::vector<OptimizerCase> optimizers() {
  train::OptimizerOptions sgd;
  sgd.type = OptimizerType::sgd;
  sgd.learning_rate = 0.2;
  sgd.weight_decay = 0.1;
  train::OptimizerOptions momentum = sgd;
  momentum.learning_rate = 0.1;
  momentum.momentum = 0.9;
  momentum.dampening = 0.5;
  train::OptimizerOptions nesterov = sgd;
  nesterov.learning_rate = 0.05;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  train::OptimizerOptions adam;
  adam.type = OptimizerType::adam;
  adam.learning_rate = 1e-2;
  adam.weight_decay = 0.1;
  return {{"sgd", sgd}, {"momentum", momentum}, {"nesterov", nesterov}, {"adam with L2", adam}};
}

TrainingCase case_of(int world) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.residual_dropout = 0.1;
  training.options = tiny_options(world, 6, 4);
  training.world = world;
  return training;
}

/// Runs all four stages; returns stage 0's result.
TrainingResult expect_stages_agree(TrainingCase training, const std::string& what) {
  training.options.zero.stage = 0;
  const TrainingResult expected = run_training(training);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss) << what;
  for (int stage = 1; stage <= 3; ++stage) {
    training.options.zero.stage = stage;
    expect_same(expected, run_training(training), what + ", stage " + std::to_string(stage));
  }
  return expected;
}

/// A run with 16-bit parameters whose gradients are added up in 16 bits, too.
TrainingCase narrow_case(int world, DType dtype) {
  TrainingCase training = case_of(world);
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.accumulation_dtype = dtype;
  training.options.loss_scale.initial_scale_power = 8;
  return training;
}

class OptimizerSameBits : public testing::TestWithParam<int> {};

TEST_P(OptimizerSameBits, AcrossStages) {
  std::set<std::string> states;
  for (const OptimizerCase& optimizer : optimizers()) {
    TrainingCase training = case_of(GetParam());
    training.options.optimizer = optimizer.options;
    states.insert(expect_stages_agree(training, optimizer.name).state);
  }
  EXPECT_EQ(states.size(), optimizers().size()) << "two optimizers did the same";
}

TEST_P(OptimizerSameBits, AcrossStagesWithAMaster) {
  for (const OptimizerCase& optimizer : optimizers()) {
    TrainingCase training = case_of(GetParam());
    training.options.dtype = training.options.communication_dtype = DType::bf16;
    training.options.optimizer = optimizer.options;
    expect_stages_agree(training, optimizer.name);
  }
}

TEST_P(OptimizerSameBits, AcrossStagesWithStochasticRoundingInsteadOfAMaster) {
  TrainingCase training = narrow_case(GetParam(), DType::bf16);
  const TrainingResult mastered = expect_stages_agree(training, "fp32-master");
  training.options.state_recipe = train::StateRecipe::bf16_sr;
  const TrainingResult stochastic = expect_stages_agree(training, "bf16-sr");
  // Two moments of 2 bytes instead of three states of 4.
  EXPECT_EQ(3 * stochastic.memory.optimizer, mastered.memory.optimizer);
  EXPECT_NEAR(stochastic.metrics.back().loss, mastered.metrics.back().loss, 0.05);
  // Another seed gives other random numbers, and so other bits.
  training.options.seed += 1;
  EXPECT_NE(run_training(training).state, stochastic.state);
}

struct RecipeCase {
  OptimizerType type;
  StateRecipe recipe;
  double bytes;  ///< optimizer state per element
};

constexpr RecipeCase kRecipes[] = {
    {OptimizerType::adamw, StateRecipe::fp32_master, 12},
    {OptimizerType::adamw, StateRecipe::packed_master, 10},
    {OptimizerType::adamw, StateRecipe::bf16_moments, 8},
    {OptimizerType::adamw, StateRecipe::packed_bf16_moments, 6},
    {OptimizerType::adamw, StateRecipe::eight_bit, 6.0625},
    {OptimizerType::lion, StateRecipe::fp32_master, 8},
    {OptimizerType::lion, StateRecipe::packed_master, 6},
    {OptimizerType::lion, StateRecipe::bf16_moments, 6},
    {OptimizerType::lion, StateRecipe::packed_bf16_moments, 4},
};

/// A run with bf16 parameters.
TrainingCase recipe_case(int world, const RecipeCase& recipe) {
  TrainingCase training = case_of(world);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.optimizer.type = recipe.type;
  if (recipe.type == OptimizerType::lion) training.options.optimizer.learning_rate = 2e-3;
  training.options.state_recipe = recipe.recipe;
  return training;
}

/// Drops the lines of masters and remainders, which packing changes.
std::string without_masters(const std::string& state) {
  std::istringstream lines(state);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (line.find(" master ") == std::string::npos && line.find(" remainder ") == std::string::npos)
      rest += line + '\n';
  return rest;
}

TEST_P(OptimizerSameBits, AcrossStagesOfEveryRecipe) {
  TrainingResult whole, unpacked;  // fp32_master's; that of the last unpacked recipe
  for (const RecipeCase& recipe : kRecipes) {
    const std::string what = std::string(recipe.type == OptimizerType::lion ? "lion" : "adamw") +
                             " " + std::to_string(static_cast<int>(recipe.recipe));
    TrainingResult result = expect_stages_agree(recipe_case(GetParam(), recipe), what);
    if (recipe.recipe == StateRecipe::fp32_master) whole = result;
    const double whole_bytes = recipe.type == OptimizerType::lion ? 8 : 12;
    EXPECT_EQ(static_cast<double>(result.memory.optimizer),
              static_cast<double>(whole.memory.optimizer) / whole_bytes * recipe.bytes)
        << what;
    EXPECT_NEAR(result.metrics.back().loss, whole.metrics.back().loss, 0.05) << what;
    if (is_packed(recipe.recipe)) {
      result.state = without_masters(result.state);
      unpacked.state = without_masters(unpacked.state);
      expect_same(unpacked, result, what + " and the same with a copy");
    } else {
      EXPECT_NE(result.state, unpacked.state) << what;
      unpacked = std::move(result);
    }
  }
}

TEST_P(OptimizerSameBits, WithinReductionOrdersOfAccumulation) {
  for (const OptimizerCase& optimizer : optimizers()) {
    TrainingCase training = case_of(GetParam());
    training.options.accumulation = 3;
    training.options.global_batch = 6 * GetParam();
    training.options.micro_batch = 2;
    training.options.optimizer = optimizer.options;
    const TrainingResult once_per_step = run_training(training);
    training.options.zero.stage = 1;
    expect_same(once_per_step, run_training(training), optimizer.name + std::string(", stage 1"));
    training.options.zero.stage = 2;
    const TrainingResult per_micro_step = run_training(training);
    training.options.zero.stage = 3;
    expect_same(per_micro_step, run_training(training), optimizer.name + std::string(", stage 3"));
  }
}

TEST_P(OptimizerSameBits, AcrossStagesWhenGradientsAddUpInSixteenBits) {
  for (DType dtype : {DType::bf16, DType::f16})
    for (DType wire : {dtype, DType::f32}) {
      TrainingCase training = narrow_case(GetParam(), dtype);
      training.options.communication_dtype = wire;
      expect_stages_agree(training,
                          std::string(name_of(dtype)) + " over " + std::string(name_of(wire)));
      training.options.zero.reduce_bucket_elements = 2048;
      training.options.zero.allgather_bucket_elements = 3072;
      expect_stages_agree(training, "small buckets");
    }
}

TEST_P(OptimizerSameBits, SixteenBitSumsRoundEachMicroStepAndHalveTheirMemory) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    TrainingResult narrow[4], wide[4];
    for (int stage = 0; stage <= 3; ++stage) {
      TrainingCase training = narrow_case(GetParam(), dtype);
      training.options.accumulation = 3;
      training.options.global_batch = 6 * GetParam();
      training.options.micro_batch = 2;
      training.options.zero.stage = stage;
      narrow[stage] = run_training(training);
      training.options.accumulation_dtype = DType::f32;
      wide[stage] = run_training(training);
      EXPECT_EQ(2 * narrow[stage].memory.gradients, wide[stage].memory.gradients);
      EXPECT_NE(narrow[stage].state, wide[stage].state);
      EXPECT_NEAR(narrow[stage].metrics.back().loss, wide[stage].metrics.back().loss, 0.05);
    }
    expect_same(narrow[0], narrow[1], "stage 1");
    expect_same(narrow[2], narrow[3], "stage 3");
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, OptimizerSameBits, testing::Values(1, 2, 3));

TEST(OptimizerSlices, AreLimitedByTheTileAndBySubGroups) {
  const auto slice = [](std::int64_t sub_group) {
    train::TrainOptions options;
    options.tile_elements = 4096;
    options.zero.sub_group_elements = sub_group;
    return train::plan_frame(options, 1).limits.tile_elements;
  };
  EXPECT_EQ(slice(2048), 2048);
  EXPECT_EQ(slice(8192), 4096);
  EXPECT_EQ(slice(0), 4096);  // no limit
}

TEST(SixteenBitSums, OfOneContributionAreItself) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    TrainingCase training = narrow_case(1, dtype);
    const TrainingResult narrow = run_training(training);
    training.options.accumulation_dtype = DType::f32;
    expect_same(narrow, run_training(training), std::string(name_of(dtype)));
  }
}

}  // namespace
}  // namespace strata::tests

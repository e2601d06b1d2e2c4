// Plans that keep the parameters of some units in another type than activations have. Operations
// read a copy that is rounded as a master copy is, so an fp32 unit in a 16-bit model has the bits
// that it has in 16 bits beside an fp32 master.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/test_directory.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/saved_runs.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::UpdateTime;

using Chosen = bool (*)(const std::string& unit);

bool all(const std::string&) { return true; }

/// True for what people keep in fp32: embedding, norms and biases, every other unit of a layer.
bool some(const std::string& unit) {
  return unit.starts_with("embedding") || unit.ends_with(".vectors");
}

/// A run of GPT-2, whose head is its embedding, in `dtype`.
TrainingCase plain_case(DType dtype, int world, int stage) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 2;
  training.options = tiny_options(world, 4, 3);
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.zero.stage = stage;
  training.options.tile_elements = 4096;
  training.world = world;
  return training;
}

/// Returns the same run with the chosen units in `dtype`.
TrainingCase keeping(TrainingCase training, Chosen chosen, DType dtype) {
  training.change_plan = [chosen, dtype](runtime::Plan& plan) {
    for (runtime::UnitPlan& unit : plan.units)
      if (chosen(unit.unit)) unit.recipe.dtype = dtype;
  };
  return training;
}

/// Returns `result` without the state of these kinds.
TrainingResult but_for(const std::vector<std::string>& kinds, TrainingResult result) {
  result.state = without(kinds, result.state);
  return result;
}

class UnitTypes : public testing::TestWithParam<int> {};

TEST_P(UnitTypes, Fp32HasTheBitsOf16BitsBesideAMaster) {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const int stage : {0, 1, 2, 3})
      for (const Chosen chosen : {all, some}) {
        const TrainingCase plain = plain_case(dtype, GetParam(), stage);
        const TrainingResult narrow = run_training(plain);
        const TrainingResult wide = run_training(keeping(plain, chosen, DType::f32));
        const std::vector<std::string> weights{"parameter", "master"};
        expect_same(but_for(weights, narrow), but_for(weights, wide),
                    "stage " + std::to_string(stage));
        EXPECT_NE(wide.state.find("wte.weight parameter fp32"), std::string::npos);
        EXPECT_EQ(wide.state.find("wte.weight master"), std::string::npos);
        EXPECT_EQ(wide.state.find(" master ") == std::string::npos, chosen == all);
        // One parameter of four bytes replaces one of two and a master of four; stages 1 and 2
        // shard only the master.
        if (stage % 3 == 0) {
          EXPECT_LT(wide.memory.parameters + wide.memory.optimizer,
                    narrow.memory.parameters + narrow.memory.optimizer);
        }
      }
}

TEST_P(UnitTypes, OptimizersWithMastersTakeFp32Units) {
  using train::OptimizerType;
  using train::StateRecipe;
  for (const auto& [type, recipe] : {std::pair{OptimizerType::adamw, StateRecipe::eight_bit},
                                     std::pair{OptimizerType::adamw, StateRecipe::bf16_moments},
                                     std::pair{OptimizerType::lion, StateRecipe::fp32_master},
                                     std::pair{OptimizerType::sgd, StateRecipe::fp32_master}}) {
    TrainingCase plain = plain_case(DType::bf16, GetParam(), 3);
    plain.options.optimizer.type = type;
    plain.options.state_recipe = recipe;
    plain.options.offload.optimizer = Home::host;
    const std::vector<std::string> weights{"parameter", "master"};
    expect_same(but_for(weights, run_training(plain)),
                but_for(weights, run_training(keeping(plain, some, DType::f32))),
                "optimizer " + std::to_string(static_cast<int>(type)) + ", recipe " +
                    std::to_string(static_cast<int>(recipe)));
  }
}

TEST_P(UnitTypes, StagesGiveTheSameBits) {
  const auto at = [](int stage) {
    return run_training(keeping(plain_case(DType::bf16, GetParam(), stage), some, DType::f32));
  };
  const TrainingResult expected = at(0);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
  const TrainingResult whole = run_training(plain_case(DType::f32, GetParam(), 0));
  for (std::size_t step = 0; step < whole.metrics.size(); ++step)
    EXPECT_NEAR(expected.metrics[step].loss, whole.metrics[step].loss, 0.02);
  for (const int stage : {1, 2, 3})
    expect_same(expected, at(stage), "stage " + std::to_string(stage));
}

/// Every home of parameters and optimizer state gives the same bits, at each time of updates.
TEST_P(UnitTypes, HomesGiveTheSameBits) {
  const TrainingResult expected =
      run_training(keeping(plain_case(DType::bf16, GetParam(), 0), some, DType::f32));
  for (const int stage : {0, 1, 3})
    for (const Home target : {Home::host, Home::disk})
      for (const UpdateTime updates : {UpdateTime::step_end, UpdateTime::next_step}) {
        TrainingCase training =
            keeping(plain_case(DType::bf16, GetParam(), stage), some, DType::f32);
        training.options.offload.optimizer = target;
        if (stage != 1) training.options.offload.parameters = target;
        training.options.offload.updates = updates;
        training.options.zero.allgather_bucket_elements = 2048;
        expect_same(expected, run_training(training),
                    "target " + std::to_string(static_cast<int>(target)) + ", stage " +
                        std::to_string(stage));
      }
}

TEST_P(UnitTypes, EarlyUpdatesAndRecomputationGiveTheSameBits) {
  for (const int stage : {0, 3}) {
    TrainingCase training = keeping(plain_case(DType::bf16, GetParam(), stage), some, DType::f32);
    training.options.gradient_clipping = 0;
    training.options.bf16_check_overflow = false;
    training.options.zero.max_reuse_distance_elements = 0;
    const TrainingResult expected = run_training(training);
    training.options.offload.updates = UpdateTime::gradient;
    training.options.activation_checkpointing = true;
    expect_same(expected, run_training(training), "stage " + std::to_string(stage));
  }
}

TEST_P(UnitTypes, MicroStepsLayerByLayerGiveTheSameBits) {
  TrainingCase training = keeping(plain_case(DType::bf16, GetParam(), 0), some, DType::f32);
  training.options.accumulation = 2;
  training.options.micro_batch = 2 / GetParam();
  const TrainingResult expected = run_training(training);
  training.options.offload.layer_major = true;
  expect_same(expected, run_training(training), "layer by layer");
}

TEST_P(UnitTypes, NarrowUnitsOfAnFp32Model) {
  const auto at = [](int stage) {
    return run_training(keeping(plain_case(DType::f32, GetParam(), stage), some, DType::bf16));
  };
  const TrainingResult expected = at(0);
  EXPECT_NE(expected.state.find("wte.weight parameter bf16"), std::string::npos);
  EXPECT_NE(expected.state.find("wte.weight master fp32"), std::string::npos);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
  for (const int stage : {1, 2, 3})
    expect_same(expected, at(stage), "stage " + std::to_string(stage));
}

TEST_P(UnitTypes, TrainedFp32BesideAFrozen16BitBase) {
  const auto at = [](int stage) {
    TrainingCase training = plain_case(DType::bf16, GetParam(), stage);
    training.change_plan = [](runtime::Plan& plan) {
      for (runtime::UnitPlan& unit : plan.units)
        if (some(unit.unit))
          unit.recipe.dtype = DType::f32;
        else
          unit.recipe.trainable = false;
    };
    return run_training(training);
  };
  const TrainingResult expected = at(0);
  EXPECT_EQ(expected.state.find(" master "), std::string::npos);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
  for (const int stage : {1, 2, 3})
    expect_same(expected, at(stage), "stage " + std::to_string(stage));
}

INSTANTIATE_TEST_SUITE_P(Worlds, UnitTypes, testing::Values(1, 2));

TEST(UnitTypesOf, WorldsOfVirtualRanksGiveTheSameBits) {
  for (const int stage : {0, 3}) {
    TrainingCase training = keeping(plain_case(DType::bf16, 4, stage), some, DType::f32);
    const TrainingResult expected = run_training(training);
    training.options.virtual_ranks = 4;
    for (const int world : {1, 2, 4}) {
      training.world = world;
      expect_same(expected, run_training(training), "world " + std::to_string(world));
    }
  }
}

TEST(UnitTypesOf, CheckpointsGoOn) {
  for (const int stage : {0, 3})
    for (const Home target : {Home::device, Home::disk}) {
      const TrainingCase plain = case_of(2, stage, target, recipe("fp32-master"));
      const TrainingCase training = keeping(plain, some, DType::f32);
      const TestDirectory directory;
      const Saved saved = save_after_steps(training, directory.path());
      const Loaded same = load(training, saved);
      EXPECT_EQ(same.state, saved.state);
      EXPECT_EQ(same.continued, saved.continued);
      EXPECT_TRUE(same.notes.empty()) << same.notes.front();

      // Runs without the Plan make masters of the fp32 weights, and runs with it the reverse; both
      // go on with equal bits.
      const Loaded narrow = load(plain, saved);
      const std::vector<std::string> weights{"parameter", "master"};
      EXPECT_EQ(without(weights, narrow.continued), without(weights, saved.continued));
      EXPECT_FALSE(narrow.notes.empty());
      const TestDirectory other;
      const Loaded wide = load(training, save_after_steps(plain, other.path()));
      EXPECT_EQ(wide.state, saved.state);
      EXPECT_EQ(wide.continued, saved.continued);
    }
}

TEST(UnitTypesOf, DevicesConvertTheSame) {
  TrainingCase plain = plain_case(DType::bf16, 2, 3);
  plain.options.steps = 2;
  plain.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  const std::vector<std::string> weights{"parameter", "master"};
  expect_same(but_for(weights, run_training(plain)),
              but_for(weights, run_training(keeping(plain, some, DType::f32))), "simulated");
}

}  // namespace
}  // namespace strata::tests

// Plans that keep units in different formats: each unit has the same bits as where all units have
// its format.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/training/ranks.h"
#include "train/config/make_plan.h"

namespace strata::tests {
namespace {

using train::StateRecipe;

/// A run with bf16 parameters and no clipping (frozen units are not in the norm), with state in
/// host memory at stage 3.
TrainingCase case_of(int world, int stage, int steps) {
  TrainingCase training;
  training.model = tiny_llama();
  training.options = tiny_options(world, 6, steps);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.gradient_clipping = 0;
  training.options.zero.stage = stage;
  if (stage == 3) training.options.offload.optimizer = plan::Home::host;
  training.world = world;
  return training;
}

/// True for layer 1 and all vectors: half of the units.
bool is_other(const std::string& unit) {
  return unit.starts_with("layer.1.") || unit.ends_with(".vectors");
}

/// Gives the other units another recipe.
TrainingCase mixed(TrainingCase training, StateRecipe recipe) {
  train::TrainOptions options = training.options;
  options.state_recipe = recipe;
  training.change_plan = [options](runtime::Plan& plan) {
    const runtime::UnitRecipe other = train::choices_of(options).recipe;
    for (runtime::UnitPlan& unit : plan.units)
      if (is_other(unit.unit)) unit.recipe = other;
  };
  return training;
}

/// Returns describe_state's lines by unit; "" has those of the step's scalars.
std::map<std::string, std::string> by_unit(const TrainingCase& training, const std::string& state) {
  std::map<std::string, std::string> unit_of, lines;
  const train::BatchShape shape{DType::bf16, 1, 16};
  for (const runtime::ParameterUnit& unit :
       train::build_model(training.model, shape, train::ModelUse::train).graph.units)
    for (const runtime::Segment& segment : unit.segments) unit_of[segment.name] = unit.name;
  std::istringstream text(state);
  for (std::string line; std::getline(text, line);)
    lines[unit_of[line.substr(0, line.find(' '))]] += line + "\n";
  return lines;
}

class UnitRecipes : public testing::TestWithParam<int> {};

/// The first update reads its new moments before they are rounded, so the gradients of two steps do
/// not depend on the recipes, and the second update of each unit depends on its own recipe alone.
TEST_P(UnitRecipes, EachUnitHasTheBitsOfItsRecipe) {
  for (const StateRecipe recipe :
       {StateRecipe::eight_bit, StateRecipe::bf16_moments, StateRecipe::packed_bf16_moments})
    for (const int stage : {0, 3}) {
      TrainingCase training = case_of(GetParam(), stage, 2);
      const TrainingResult wide = run_training(training);
      const TrainingResult both = run_training(mixed(training, recipe));
      training.options.state_recipe = recipe;
      const TrainingResult narrow = run_training(training);
      const std::string what =
          std::to_string(static_cast<int>(recipe)) + ", stage " + std::to_string(stage);
      auto expected = by_unit(training, wide.state), others = by_unit(training, narrow.state);
      for (auto& [unit, lines] : expected) {
        ASSERT_TRUE(unit.empty() || lines != others.at(unit)) << what << ", " << unit;
        if (is_other(unit)) lines = others.at(unit);
      }
      EXPECT_EQ(by_unit(training, both.state), expected) << what;
      for (std::size_t step = 0; step < 2; ++step)
        EXPECT_EQ(both.metrics[step].loss, wide.metrics[step].loss) << what << ", step " << step;
      const auto bytes = [](const TrainingResult& of) {
        return of.memory.optimizer + of.memory.pageable.optimizer;
      };
      EXPECT_LT(bytes(both), bytes(wide)) << what;
      EXPECT_GT(bytes(both), bytes(narrow)) << what;
    }
}

TEST_P(UnitRecipes, MastersMayBePackedInSomeUnits) {
  for (const int stage : {1, 3}) {
    const TrainingCase training = case_of(GetParam(), stage, 4);
    TrainingResult copied = run_training(training);
    TrainingResult packed = run_training(mixed(training, StateRecipe::packed_master));
    EXPECT_NE(packed.state.find(" remainder "), std::string::npos);
    EXPECT_NE(packed.state.find(" master "), std::string::npos);
    copied.state = without({"master", "remainder"}, copied.state);
    packed.state = without({"master", "remainder"}, packed.state);
    expect_same(copied, packed, "stage " + std::to_string(stage));
  }
}

TEST_P(UnitRecipes, EveryStageOfAMixtureHasTheSameBits) {
  const auto at = [](int stage) {
    return run_training(mixed(case_of(GetParam(), stage, 4), StateRecipe::eight_bit));
  };
  const TrainingResult expected = at(0);
  for (const int stage : {1, 2, 3}) expect_same(expected, at(stage), std::to_string(stage));
}

void freeze_others(runtime::Plan& plan) {
  for (runtime::UnitPlan& unit : plan.units) unit.recipe.trainable = !is_other(unit.unit);
}

TEST_P(UnitRecipes, FrozenUnitsStayAndTheOthersGoOnAsWithThem) {
  for (const int stage : {0, 1, 2, 3}) {
    TrainingCase training = case_of(GetParam(), stage, 1);
    const auto trained = by_unit(training, run_training(training).state);
    training.change_plan = freeze_others;
    const auto found = by_unit(training, run_training(training).state);
    training.options.steps = 0;
    auto expected = by_unit(training, run_training(training).state);
    for (auto& [unit, lines] : expected)
      if (is_other(unit))
        EXPECT_EQ(without({"parameter"}, lines), "") << unit;
      else
        lines = trained.at(unit);
    EXPECT_EQ(found, expected) << "stage " << stage;
  }
}

TEST_P(UnitRecipes, FrozenUnitsGiveTheSameBitsAtEveryStage) {
  TrainingCase training = case_of(GetParam(), 0, 4);
  training.change_plan = freeze_others;
  const TrainingResult expected = run_training(training);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
  for (const int stage : {1, 2, 3}) {
    TrainingCase staged = case_of(GetParam(), stage, 4);
    staged.change_plan = freeze_others;
    expect_same(expected, run_training(staged), std::to_string(stage));
  }
}

TEST_P(UnitRecipes, FrozenUnitsGiveTheSameBitsLayerByLayer) {
  TrainingCase training = case_of(GetParam(), 0, 3);
  training.options.accumulation = 3;
  training.options.micro_batch = 2 / GetParam();
  training.change_plan = freeze_others;
  const TrainingResult expected = run_training(training);
  training.options.offload.layer_major = true;
  expect_same(expected, run_training(training), "layer by layer");
}

INSTANTIATE_TEST_SUITE_P(Worlds, UnitRecipes, testing::Values(1, 2));

TEST(UnitRecipesOf, PlansThatNoPassObeysAreRefused) {
  const auto refused = [](const std::string& words,
                          const std::function<void(runtime::Plan&)>& change) {
    TrainingCase training = case_of(1, 0, 1);
    training.change_plan = change;
    try {
      run_training(training);
      ADD_FAILURE() << "accepted, expected " << words;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused(
      "the Plan's units[1].recipe.optimizer.moment_dtype of unit 'layer.0.vectors': found uint8",
      [](runtime::Plan& plan) { plan.units[1].recipe.optimizer.moment_dtype = DType::u8; });
  refused("the Plan's recipe.trainable: found false for all units", [](runtime::Plan& plan) {
    for (runtime::UnitPlan& unit : plan.units) unit.recipe.trainable = false;
  });
}

}  // namespace
}  // namespace strata::tests

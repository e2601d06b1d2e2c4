#include "train/run/plan_facts.h"

#include <gtest/gtest.h>

#include "train/config/make_plan.h"

namespace strata::train {
namespace {

runtime::UnitRecipe recipe(const TrainOptions& options, StateRecipe state) {
  TrainOptions asked = options;
  asked.state_recipe = state;
  return choices_of(asked).recipe;
}

runtime::Plan plan_of(const TrainOptions& options, StateRecipe state) {
  runtime::Plan plan;
  for (const char* name : {"a", "b", "c"})
    plan.units.push_back({.unit = name, .recipe = recipe(options, state)});
  return plan;
}

TEST(PlanFacts, AreThoseOfOptionsWithoutAPlanFile) {
  TrainOptions options;
  options.dtype = DType::bf16;
  options.zero.stage = 3;
  EXPECT_EQ(zero_stage_text(plan_of(options, {}), options), "3") << "also on one rank";
  EXPECT_EQ(state_recipe_text(plan_of(options, StateRecipe::fp32_master), options), "fp32-master");
  EXPECT_EQ(state_recipe_text(plan_of(options, StateRecipe::packed_bf16_moments), options),
            "packed-bf16-moments");
  EXPECT_EQ(state_recipe_text(plan_of(options, StateRecipe::eight_bit), options), "8bit");
  EXPECT_EQ(state_recipe_text(plan_of(options, StateRecipe::bf16_sr), options), "bf16-sr");
  EXPECT_EQ(trained_text(plan_of(options, {})), "");
}

TEST(PlanFacts, AreThoseOfThePlanWhateverOptionsSay) {
  TrainOptions options;
  options.plan = "a.plan";
  options.zero.stage = 1;
  options.state_recipe = StateRecipe::eight_bit;
  runtime::Plan plan = plan_of(options, StateRecipe::fp32_master);
  EXPECT_EQ(zero_stage_text(plan, options), "0");
  plan.units[1].shard_optimizer = plan.units[1].shard_gradient = true;
  EXPECT_EQ(zero_stage_text(plan, options), "2");
  plan.units[1].shard_parameter = true;
  EXPECT_EQ(zero_stage_text(plan, options), "3");
  EXPECT_EQ(state_recipe_text(plan, options), "fp32-master");
  plan.units[0].recipe = recipe(options, StateRecipe::eight_bit);
  EXPECT_EQ(state_recipe_text(plan, options), "mixed: 2 of 3 units fp32-master, 1 8bit");
  plan.units[0].recipe.trainable = false;
  EXPECT_EQ(state_recipe_text(plan, options), "fp32-master");
  EXPECT_EQ(trained_text(plan), "2 of 3 units, frozen: a");
  plan.units[2].recipe.trainable = false;
  EXPECT_EQ(trained_text(plan), "1 of 3 units, frozen: a, c");
}

}  // namespace
}  // namespace strata::train

#include "step/check_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "zero/policy.h"

namespace strata::step {
namespace {

/// Returns the complaint about a Plan for units "unit.0" and "unit.1" after `change`; "" if none.
std::string complaint(const std::function<void(runtime::Plan&)>& change) {
  std::vector<runtime::ParameterUnit> units(2);
  units[0] = {.name = "unit.0", .elements = 1024};
  units[1] = {.name = "unit.1", .elements = 2048};
  runtime::Plan plan;
  plan.units = zero::plan_units(units, {}, 1);
  change(plan);
  try {
    require_none(find_problems(plan, units));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(CheckPlan, NamesTheFirstUnitThatDiffers) {
  using runtime::Plan;
  const auto expect_words = [](const std::string& words, const std::function<void(Plan&)>& change) {
    const std::string message = complaint(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " not in '" << message << "'";
  };
  EXPECT_EQ(complaint([](Plan&) {}), "");
  expect_words("units: found 'other' as unit 1, and the model has 'unit.1'",
               [](Plan& plan) { plan.units[1].unit = "other"; });
  expect_words("found 'unit.1' as unit 0, and the model has 'unit.0'",
               [](Plan& plan) { std::swap(plan.units[0], plan.units[1]); });
  expect_words("found nothing as unit 1, and the model has 'unit.1'",
               [](Plan& plan) { plan.units.pop_back(); });
  expect_words("found 'unit.1' as unit 2, and the model has no such unit",
               [](Plan& plan) { plan.units.push_back(plan.units.back()); });
  expect_words(
      "the Plan's units[1].elements of unit 'unit.1': found 1024, and the model has 2048; make a "
      "Plan",
      [](Plan& plan) { plan.units[1].elements = 1024; });
}

TEST(CheckPlan, RefusesShardsAndResidentsThatNoPassObeys) {
  using runtime::Plan;
  const auto refused = [](const std::string& words, const std::function<void(Plan&)>& change) {
    const std::string message = complaint(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " not in '" << message << "'";
  };
  const auto of_two = [](Plan& plan) -> runtime::UnitPlan& {
    plan.mesh = comm::data_mesh(2);
    return plan.units[1];
  };
  refused("shard.gradient of unit 'unit.1': found true, expected false",
          [&](Plan& plan) { of_two(plan).shard_gradient = true; });
  refused("shard.parameter of unit 'unit.1'",
          [&](Plan& plan) { of_two(plan).shard_parameter = plan.units[1].shard_optimizer = true; });
  EXPECT_EQ(complaint([&](Plan& plan) { of_two(plan).shard_optimizer = true; }), "");
  EXPECT_EQ(complaint([](Plan& plan) { plan.units[1].shard_gradient = true; }), "")
      << "virtual ranks of one rank";
  refused("resident.device of unit 'unit.1': found 4096 elements, and there are 2048",
          [](Plan& plan) { plan.units[1].optimizer_device_elements = 4096; });
  refused("resident",
          [](Plan& plan) { plan.units[0].optimizer_host_elements = runtime::kUnlimited; });
  refused("limits.tile_elements: found 1500, expected a multiple of 1024",
          [](Plan& plan) { plan.limits.tile_elements = 1500; });
  refused("limits.tile_elements: found 0", [](Plan& plan) { plan.limits.tile_elements = 0; });
  refused("which move as a whole", [](Plan& plan) {
    plan.units[1].parameter_tier = runtime::Tier::disk;
    plan.units[1].optimizer_device_elements = 1024;
  });
}

TEST(CheckPlan, RefusesWhatNoPassObeys) {
  using runtime::Plan;
  using runtime::Tier;
  const auto expect_refused = [](const std::string& words,
                                 const std::function<void(Plan&)>& change) {
    const std::string message = complaint(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " not in '" << message << "'";
  };
  expect_refused("tier.optimizer of unit 'unit.1': found pinned, expected device, pageable or disk",
                 [](Plan& plan) { plan.units[1].optimizer_tier = Tier::pinned; });
  expect_refused("tier.gradient of unit 'unit.0': found pageable, expected device, pinned or disk",
                 [](Plan& plan) { plan.units[0].gradient_tier = Tier::pageable; });
  expect_refused("tier.parameter of unit 'unit.0': found pageable",
                 [](Plan& plan) { plan.units[0].parameter_tier = Tier::pageable; });
  expect_refused(
      "tier.parameter of unit 'unit.0': found disk, where each of 1 ranks updates a part",
      [](Plan& plan) {
        plan.units[0].parameter_tier = Tier::disk;
        plan.units[0].shard_optimizer = true;
      });
  expect_refused("gradient.accumulated: found bf16, expected fp32 or the type produced, fp16",
                 [](Plan& plan) {
                   plan.gradient = {DType::f16, DType::f16, DType::bf16};
                 });
  expect_refused(
      "recipe.optimizer.master of unit 'unit.0': found packed, which needs dtype bf16, not fp32",
      [](Plan& plan) {
        plan.units[0].recipe.optimizer = {.operation = "adamw_packed",
                                          .master = runtime::MasterFormat::packed};
      });
  expect_refused("read_ahead_bytes: found 4096, which needs a schedule; set scheduled to true",
                 [](Plan& plan) {
                   plan.scheduled = false;
                   plan.read_ahead_bytes = 4096;
                 });
  EXPECT_EQ(complaint([](Plan& plan) {
              plan.units[0].recipe.trainable = false;
              plan.units[1].recipe.optimizer = {
                  .operation = "adamw_8bit", .moment_dtype = DType::u8, .scale_block = 128};
            }),
            "");
  EXPECT_EQ(complaint([](Plan& plan) {
              plan.gradient = {DType::bf16, DType::f32, DType::bf16};
            }),
            "");
}

TEST(CheckPlan, NamesWhatMakesARecipeOneOfItsOperation) {
  using runtime::OptimizerRecipe;
  const auto said = [](const OptimizerRecipe& optimizer, bool trainable = true) {
    return complaint([&](runtime::Plan& plan) {
      plan.units[1].recipe = {DType::bf16, trainable, optimizer};
    });
  };
  const std::string unit = " of unit 'unit.1': found ";
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({.moments = 1}), "the Plan's units[1].recipe.optimizer.moments" + unit +
                                      "1, which is no format of adamw; set moments 2");
  EXPECT_EQ(said({.random = true}), "the Plan's units[1].recipe.optimizer.random" + unit +
                                        "true, which is no format of adamw; set random false");
  EXPECT_EQ(said({.moment_dtype = DType::bf16}),
            "the Plan's units[1].recipe.optimizer.random" + unit +
                "false, which is no format of adamw; set random true");
  const OptimizerRecipe wide{.operation = "adamw_8bit"};
  const std::string expected =
      "the Plan's units[1].recipe.optimizer.moment_dtype" + unit +
      "fp32, which is no format of adamw_8bit; set moment_dtype uint8, scale_block 128";
  EXPECT_EQ(said(wide), expected);
  EXPECT_EQ(said(wide, false), expected) << "frozen";
  EXPECT_EQ(said({.operation = "adamw_lol"}),
            "the Plan's units[1].recipe.optimizer.operation" + unit +
                "adamw_lol, expected one of adamw, adamw_packed, adamw_8bit, adamw_bf16, lion, "
                "lion_packed, sgd");
}

TEST(CheckPlan, UpdatesAfterTheirGradientsNeedNothingOfTheWholeGradient) {
  using kernels::ScaleMode;
  using kernels::StepRules;
  using runtime::Updates;
  const auto problems = [](Updates updates, const StepRules& rules) {
    const std::vector<runtime::ParameterUnit> units{{.name = "unit", .elements = 1024}};
    runtime::Plan plan;
    plan.units = zero::plan_units(units, {}, 1);
    plan.updates = updates;
    return find_problems(plan, units, &rules);
  };
  EXPECT_TRUE(problems(Updates::gradient, {}).empty());
  const struct {
    StepRules rules;
    const char* words;
    const char* with;
  } cases[] = {
      {{.clip = 0.5}, " with gradient_clipping 0.5, which needs the whole", "gradient_clipping"},
      {{.scale_mode = ScaleMode::dynamic, .skip_nonfinite = true}, "whose loss scale", "dtype"},
      {{.scale_mode = ScaleMode::constant}, "whose loss scale", "dtype"},
      {{.skip_nonfinite = true}, "skips steps that are not finite", "bf16_check_overflow"}};
  for (const auto& [rules, words, with] : cases) {
    const std::vector<PlanProblem> found = problems(Updates::gradient, rules);
    ASSERT_EQ(found.size(), 1U) << words;
    EXPECT_EQ(found[0].field + found[0].found, "updatesgradient");
    EXPECT_NE(found[0].text.find(words), std::string::npos) << found[0].text;
    EXPECT_NE(found[0].text.find("choose step_end"), std::string::npos);
    EXPECT_EQ(found[0].with, with);
    EXPECT_TRUE(problems(Updates::next_step, rules).empty());
    EXPECT_TRUE(problems(Updates::step_end, rules).empty());
  }
  EXPECT_EQ(problems(Updates::gradient, {.clip = 1, .skip_nonfinite = true}).size(), 2U)
      << "all are found";
}

TEST(CheckPlan, APlanThatTrainsNothingIsRefusedForTrainingAlone) {
  const std::vector<runtime::ParameterUnit> units{{.name = "unit", .elements = 1024}};
  runtime::Plan plan;
  plan.units = zero::plan_units(units, {}, 1);
  plan.units[0].recipe.trainable = false;
  EXPECT_TRUE(find_problems(plan, units).empty());
  const kernels::StepRules rules;
  EXPECT_EQ(find_problems(plan, units, &rules).size(), 1U);
}

TEST(CheckPlan, VirtualRanksAreAPowerOfTwoThatTheRanksDivide) {
  const auto said = [](int count, int ranks, bool layer_major = false) {
    return complaint([&](runtime::Plan& plan) {
      plan.mesh = comm::data_mesh(ranks);
      plan.virtual_ranks = count;
      if (layer_major) plan.order = runtime::MicroStepOrder::by_layer;
    });
  };
  EXPECT_EQ(said(4, 2), "");
  EXPECT_EQ(said(4, 4), "");
  EXPECT_EQ(said(6, 2), "the Plan's virtual_ranks: found 6, expected a power of two: 4 or 8");
  EXPECT_NE(said(2, 4).find("found 2 with 4 ranks, expected 1 or 2 ranks"), std::string::npos);
  EXPECT_NE(said(1024, 2).find("found 1024, expected at most 512"), std::string::npos);
  EXPECT_NE(said(4, 2, true).find("layer by layer"), std::string::npos);
}

}  // namespace
}  // namespace strata::step

#include "zero/policy.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"

namespace strata::zero {
namespace {

std::vector<runtime::ParameterUnit> units_of(const std::vector<std::int64_t>& elements) {
  std::vector<runtime::ParameterUnit> units;
  for (std::int64_t n : elements) {
    runtime::ParameterUnit unit;
    unit.name = "unit." + std::to_string(units.size());
    unit.elements = n;
    units.push_back(unit);
  }
  return units;
}

TEST(PlanUnits, ShardsOneKindMoreWithEachStage) {
  const auto units = units_of({1024, 4096});
  for (int stage = 0; stage <= 3; ++stage) {
    const auto plans = plan_units(units, {stage, 0, INT64_MAX}, 2);
    ASSERT_EQ(plans.size(), units.size());
    for (std::size_t u = 0; u < plans.size(); ++u) {
      EXPECT_EQ(plans[u].unit, units[u].name);
      EXPECT_EQ(plans[u].shard_optimizer, stage >= 1);
      EXPECT_EQ(plans[u].shard_gradient, stage >= 2);
      EXPECT_EQ(plans[u].shard_parameter, stage >= 3);
    }
  }
}

TEST(PlanUnits, ShardsNothingInAWorldOfOne) {
  for (const runtime::UnitPlan& plan : plan_units(units_of({1024}), {3, 0, INT64_MAX}, 1))
    EXPECT_FALSE(plan.shard_optimizer || plan.shard_gradient || plan.shard_parameter);
}

TEST(PlanUnits, KeepsSmallUnitsGatheredAndStillShardsTheirStates) {
  const auto plans = plan_units(units_of({1024, 2048, 4096}), {3, 2048, INT64_MAX}, 4);
  EXPECT_FALSE(plans[0].shard_parameter);
  EXPECT_FALSE(plans[1].shard_parameter);
  EXPECT_TRUE(plans[2].shard_parameter);
  for (const runtime::UnitPlan& plan : plans) {
    EXPECT_TRUE(plan.shard_optimizer);
    EXPECT_TRUE(plan.shard_gradient);
  }
}

TEST(PlanUnits, KeepsNoMoreThanTheModelsThreshold) {
  const auto plans = plan_units(units_of({2048, 1024, 2048, 1024}), {3, 2048, 4096}, 4);
  std::int64_t kept = 0;
  const std::vector<bool> expected{true, true, false, true};
  for (std::size_t u = 0; u < plans.size(); ++u) {
    EXPECT_EQ(!plans[u].shard_parameter, expected[u]) << u;
    if (!plans[u].shard_parameter) kept += u % 2 == 0 ? 2048 : 1024;
  }
  EXPECT_EQ(kept, 4096);
}

TEST(PlanUnits, ThresholdsMeanNothingBelowStageThree) {
  for (const runtime::UnitPlan& plan : plan_units(units_of({1024}), {2, 0, 0}, 2))
    EXPECT_FALSE(plan.shard_parameter);
}

/// What check_plan says of a Plan for units "unit.0" and "unit.1" after `change`; "" if nothing.
std::string complaint(const std::function<void(runtime::Plan&)>& change) {
  const auto units = units_of({1024, 2048});
  runtime::Plan plan;
  plan.units = plan_units(units, {}, 1);
  change(plan);
  try {
    check_plan(plan, units);
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
  expect_words("its unit 1 is 'other', the model has 'unit.1'",
               [](Plan& plan) { plan.units[1].unit = "other"; });
  expect_words("its unit 0 is 'unit.1', the model has 'unit.0'",
               [](Plan& plan) { std::swap(plan.units[0], plan.units[1]); });
  expect_words("its unit 1 is missing, the model has 'unit.1'",
               [](Plan& plan) { plan.units.pop_back(); });
  expect_words("its unit 2 is 'unit.1', the model has no such unit",
               [](Plan& plan) { plan.units.push_back(plan.units.back()); });
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
  refused("unit 'unit.1' is sharded as no stage is",
          [&](Plan& plan) { of_two(plan).shard_gradient = true; });
  refused("is sharded as no stage is",
          [&](Plan& plan) { of_two(plan).shard_parameter = plan.units[1].shard_optimizer = true; });
  EXPECT_EQ(complaint([&](Plan& plan) { of_two(plan).shard_optimizer = true; }), "");
  EXPECT_EQ(complaint([](Plan& plan) { plan.units[1].shard_gradient = true; }), "")
      << "virtual ranks of one rank";
  refused("keeps 4096 elements resident, and has 2048",
          [](Plan& plan) { plan.units[1].optimizer_device_elements = 4096; });
  refused("resident",
          [](Plan& plan) { plan.units[0].optimizer_host_elements = runtime::kUnlimited; });
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
  expect_refused("optimizer state of unit 'unit.1' in tier pinned",
                 [](Plan& plan) { plan.units[1].optimizer_tier = Tier::pinned; });
  expect_refused("gradient of unit 'unit.0' in tier pageable; it can live in device, pinned, disk",
                 [](Plan& plan) { plan.units[0].gradient_tier = Tier::pageable; });
  expect_refused("parameter of unit 'unit.0' in tier pageable",
                 [](Plan& plan) { plan.units[0].parameter_tier = Tier::pageable; });
  expect_refused("whole parameters of unit 'unit.0' on the disk", [](Plan& plan) {
    plan.units[0].parameter_tier = Tier::disk;
    plan.units[0].shard_optimizer = true;
  });
  expect_refused("adds gradients up in bf16, expected fp32 or fp16", [](Plan& plan) {
    plan.gradient = {DType::f16, DType::f16, DType::bf16};
  });
  expect_refused("unit 'unit.1' has parameters in bf16 and activations in fp32 (shape.dtype)",
                 [](Plan& plan) { plan.units[1].recipe.dtype = DType::bf16; });
  expect_refused(
      "unit 'unit.0' has a packed master, which needs bf16 parameters, found fp32",
      [](Plan& plan) { plan.units[0].recipe.optimizer.master = runtime::MasterFormat::packed; });
  expect_refused("unit 'unit.1' has scales of 100 elements (scale_block), which do not divide 1024",
                 [](Plan& plan) { plan.units[1].recipe.optimizer.scale_block = 100; });
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

TEST(PlanUnits, RefusesOtherStages) {
  for (int stage : {-1, 4}) {
    try {
      plan_units({}, {stage, 0, 0}, 2);
      FAIL() << "stage " << stage << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(stage)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace strata::zero

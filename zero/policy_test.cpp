#include "zero/policy.h"

#include <gtest/gtest.h>

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

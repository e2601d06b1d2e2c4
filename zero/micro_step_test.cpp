// Checks what the micro-steps of a step add up, written out: which batches, in which order.
#include "zero/micro_step.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace strata::zero {
namespace {

runtime::Plan plan_of(int leaves, int rounds, bool shard_gradient) {
  runtime::Plan plan;
  plan.micro_steps = rounds;
  plan.virtual_ranks = leaves;
  plan.units.resize(2);
  for (runtime::UnitPlan& unit : plan.units) unit.shard_gradient = shard_gradient;
  return plan;
}

/// Writes a step's gradient: "a b" is a sum over micro-steps, "(a+b)" a sum in the tree.
std::string gradient_of(const runtime::Plan& plan) {
  std::map<int, std::string> waiting;
  std::string accumulator;
  const auto join = [&](const MicroStepKind& p, std::string leaf) {
    for (int level = 0; level < p.joins; ++level) {
      leaf.insert(0, "(" + waiting.at(level) + "+");
      leaf += ")";
      waiting.erase(level);
    }
    if (p.completes) return leaf;
    EXPECT_FALSE(waiting.contains(p.joins)) << "would be lost";
    waiting[p.joins] = leaf;
    return std::string();
  };
  const auto add = [&](const MicroStepKind& p, const std::string& part) {
    EXPECT_NE(p.opens_sum, accumulator.find(' ') != std::string::npos);
    accumulator = p.opens_sum ? " " + part : accumulator + " " + part;
  };
  const bool reduces_each = plan.units[0].shard_gradient;
  std::string step;
  for (const auto& [p, batch] : micro_steps(plan)) {
    EXPECT_EQ(p.begins_step, step.empty());
    step = std::to_string(batch);
    if (reduces_each) {
      const std::string sum = join(p, step);
      if (p.completes) add(p, sum);
    } else {
      add(p, step);
      if (p.closes_sum) accumulator = join(p, accumulator.substr(1));
    }
    EXPECT_EQ(p.ends_step, batch + 1 == plan.micro_steps * plan.leaves());
  }
  EXPECT_TRUE(waiting.empty());
  return reduces_each ? accumulator.substr(1) : accumulator;
}

TEST(MicroStepKind, OneLeafPerRankAddsMicroStepsUp) {
  for (const bool sharded : {false, true}) {
    EXPECT_EQ(gradient_of(plan_of(1, 1, sharded)), "0");
    EXPECT_EQ(gradient_of(plan_of(0, 3, sharded)), "0 1 2");
  }
}

TEST(MicroStepKind, LeavesFormTheTree) {
  for (const bool sharded : {false, true}) {
    EXPECT_EQ(gradient_of(plan_of(2, 1, sharded)), "(0+1)");
    EXPECT_EQ(gradient_of(plan_of(8, 1, sharded)), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  }
}

/// Micro-batch a x leaves + k belongs to round a and virtual rank k (in a world of one).
TEST(MicroStepKind, RoundsAreAddedWhereTheStageAddsThem) {
  EXPECT_EQ(gradient_of(plan_of(4, 3, true)), "((0+1)+(2+3)) ((4+5)+(6+7)) ((8+9)+(10+11))");
  EXPECT_EQ(gradient_of(plan_of(4, 3, false)), "((0 4 8+1 5 9)+(2 6 10+3 7 11))");
}

TEST(MicroStepKind, DifferentOnesHaveDifferentNames) {
  std::map<std::string, MicroStepKind> names;
  for (const bool sharded : {false, true})
    for (const int rounds : {1, 2, 3})
      for (const int leaves : {1, 2, 8}) {
        const runtime::Plan plan = plan_of(leaves, rounds, sharded);
        int runs = 0;
        std::set<MicroStepKind> kinds;
        for (const MicroStep& step : micro_steps(plan)) {
          const auto [known, fresh] = names.try_emplace(name_of(step.kind), step.kind);
          EXPECT_EQ(known->second, step.kind) << known->first;
          kinds.insert(step.kind);
        }
        for (const MicroStepKind& kind : kinds) runs += runs_per_step(plan, kind);
        EXPECT_EQ(runs, rounds * leaves);
      }
  for (const char* name : {"only", "first", "middle", "last"}) EXPECT_TRUE(names.contains(name));
  EXPECT_EQ(name_of(MicroStepKind::middle), "middle");
}

}  // namespace
}  // namespace strata::zero

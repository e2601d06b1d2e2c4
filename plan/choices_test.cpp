#include "plan/choices.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using runtime::Plan;
using runtime::SavedAction;
using runtime::Tier;
using runtime::Updates;

Plan chosen(const Choices& choices, int ranks = 1) {
  return with_choices(small_frame(ranks), choices, small_training().build);
}

/// Counts the values of all blocks per action, leaving out "keep".
std::map<SavedAction, int> actions_of(const Plan& plan) {
  std::map<SavedAction, int> counts;
  for (const runtime::BlockActions& blocks : plan.saved)
    for (const auto& [name, action] : blocks.actions)
      counts[action] += blocks.last_block - blocks.first_block + 1;
  return counts;
}

TEST(Choices, TheFrameStandsAndTheChoicesFillIt) {
  Plan frame = small_frame(2);
  frame.virtual_ranks = 4;
  frame.evaluates = true;
  frame.host_bytes = 1 << 30;
  Choices choices;
  choices.sharding.stage = 1;
  choices.micro_batch = 3;
  choices.micro_steps = 2;
  Plan plan = with_choices(frame, choices, small_training().build);
  EXPECT_EQ(plan.shape.batch, 3);
  EXPECT_EQ(plan.micro_steps, 2);
  ASSERT_EQ(plan.units.size(), 10) << "matrices and vectors of embedding, layers and head";
  for (const runtime::UnitPlan& unit : plan.units) {
    EXPECT_TRUE(unit.shard_optimizer && !unit.shard_parameter) << unit.unit;
    EXPECT_EQ(unit.recipe, choices.recipe);
  }
  plan.shape.batch = frame.shape.batch;
  plan.micro_steps = frame.micro_steps;
  plan.units.clear();
  plan.saved.clear();
  EXPECT_EQ(plan, frame);
}

TEST(Choices, UpdatesOfTheDeviceEndTheirStep) {
  Choices choices;
  EXPECT_EQ(chosen(choices).updates, Updates::step_end) << "nothing is to be hidden";
  choices.updates = Updates::gradient;
  EXPECT_EQ(chosen(choices).updates, Updates::gradient);
  choices.optimizer = Home::host;
  for (const Updates updates : {Updates::step_end, Updates::next_step}) {
    choices.updates = updates;
    EXPECT_EQ(chosen(choices).updates, updates);
  }
}

TEST(Choices, OneMicroStepHasNoOrder) {
  Choices choices;
  choices.layer_major = true;
  EXPECT_EQ(chosen(choices).order, runtime::MicroStepOrder::one_by_one);
  choices.micro_steps = 2;
  EXPECT_EQ(chosen(choices).order, runtime::MicroStepOrder::by_layer);
}

TEST(Choices, TellWhichStepsGiveOtherBits) {
  Choices asked;
  asked.micro_batch = 2;
  asked.micro_steps = 4;
  const auto equal = [&](int ranks, const std::function<void(Choices&)>& change) {
    Choices other = asked;
    change(other);
    return give_equal_bits(asked, other, ranks);
  };
  const auto stage = [](int number) {
    return [number](Choices& choices) { choices.sharding.stage = number; };
  };
  EXPECT_TRUE(equal(4, stage(1)));
  EXPECT_FALSE(equal(4, stage(2)));
  EXPECT_FALSE(equal(4, stage(3)));
  EXPECT_TRUE(equal(1, stage(3))) << "nothing is reduced";
  EXPECT_TRUE(equal(4, [](Choices& choices) {
    choices.sharding.stage = 3;
    choices.layer_major = true;
  }));
  EXPECT_TRUE(equal(4, [](Choices& choices) { choices.activations = Home::host; }));
  EXPECT_FALSE(equal(1, [](Choices& choices) {
    choices.micro_batch = 4;
    choices.micro_steps = 2;
  }));
  asked.micro_steps = 1;
  EXPECT_TRUE(equal(4, stage(3))) << "each step reduces once";
}

TEST(Choices, OptimizerStateLeavesTheDeviceByPart) {
  Choices choices;
  choices.optimizer = Home::host;
  for (const runtime::UnitPlan& unit : chosen(choices).units) {
    EXPECT_EQ(unit.optimizer_tier, Tier::pageable);
    EXPECT_EQ(unit.gradient_tier, Tier::pinned);
    EXPECT_EQ(unit.parameter_tier, Tier::device);
    EXPECT_EQ(unit.optimizer_device_elements, 0);
  }
  choices.optimizer = Home::disk;
  choices.optimizer_part = 0.25;
  choices.micro_steps = 2;
  for (const runtime::UnitPlan& unit : chosen(choices).units) {
    EXPECT_EQ(unit.optimizer_tier, Tier::disk);
    EXPECT_EQ(unit.gradient_tier, Tier::device) << "the sum would cross the link twice";
    // Layers' matrices have 16 cells, the embedding 4, vectors one.
    const std::int64_t cells = unit.unit.starts_with("layer.") ? 16 : 4;
    if (unit.unit.ends_with(".matrices")) {
      EXPECT_EQ(unit.optimizer_device_elements, cells * 3 / 4 * 1024) << unit.unit;
    }
  }
}

TEST(Choices, LargeParametersLeaveTheDeviceAndSomeStayInHostMemory) {
  Choices choices;
  choices.sharding = {3, 4096, INT64_MAX};
  choices.parameters = Home::disk;
  choices.parameter_host_elements = 20'000;  // per rank: two units of 8 cells
  std::map<std::string, Tier> tiers;
  for (const runtime::UnitPlan& unit : chosen(choices, 2).units)
    if (unit.parameter_tier != Tier::device) tiers[unit.unit] = unit.parameter_tier;
  EXPECT_EQ(tiers, (std::map<std::string, Tier>{{"layer.0.matrices", Tier::pinned},
                                                {"layer.1.matrices", Tier::pinned},
                                                {"layer.2.matrices", Tier::disk},
                                                {"layer.3.matrices", Tier::disk}}));
}

TEST(Choices, WhatIsMadeAgainIsNotKept) {
  Choices choices;
  EXPECT_EQ(actions_of(chosen(choices))[SavedAction::recompute], 0);
  choices.again = Again::norms;
  const int norms = actions_of(chosen(choices))[SavedAction::recompute];
  choices.again = Again::everything;
  const int everything = actions_of(chosen(choices))[SavedAction::recompute];
  EXPECT_GT(norms, 0);
  EXPECT_GT(everything, norms);
  for (const auto& [runs, kept] : {std::pair{4, 3}, std::pair{2, 1}, std::pair{1, 0}}) {
    choices.layer_runs = runs;
    EXPECT_EQ(actions_of(chosen(choices))[SavedAction::recompute], everything + 3 - kept)
        << runs << " runs of layers keep what crosses their borders";
  }
}

TEST(Choices, ActivationsOfLayersLeaveTheDevice) {
  Choices choices;
  choices.micro_batch = 64;
  EXPECT_EQ(actions_of(chosen(choices))[SavedAction::host], 0);
  choices.activations = Home::host;
  EXPECT_GT(actions_of(chosen(choices))[SavedAction::host], 0);
  EXPECT_EQ(actions_of(chosen(choices))[SavedAction::disk], 0);
  choices.activations = Home::disk;
  EXPECT_EQ(actions_of(chosen(choices))[SavedAction::host], 0);
  EXPECT_GT(actions_of(chosen(choices))[SavedAction::disk], 0);
  choices.micro_batch = 1;
  EXPECT_EQ(actions_of(chosen(choices))[SavedAction::disk], 0) << "too small to be worth it";
}

}  // namespace
}  // namespace strata::plan

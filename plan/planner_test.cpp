#include "plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/error.h"
#include "plan/step_estimate.h"
#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using runtime::Tier;

class PlanRun : public testing::Test {
 protected:
  explicit PlanRun(machine::Machine machine = small_gpu(), int ranks = 1)
      : machine_(std::move(machine)), frame_(small_frame(ranks)) {
    frame_.backend = machine_.device.capabilities.backend;
    asked_.micro_batch = 8;
  }

  [[nodiscard]] PlannerAnswer plan(std::int64_t bytes, Strategy strategy = Strategy::balanced,
                                   const Freedom& free = {},
                                   std::int64_t most_work = 2'000'000) const {
    runtime::Plan frame = frame_;
    if (machine_.host_is_device())
      frame.host_bytes = bytes;
    else
      frame.budget_bytes[static_cast<std::size_t>(Tier::device)] = bytes;
    const Search search{model_, frame, machine_, {frame.mesh, {}}};
    return plan_for_budget({.search = search,
                            .asked = asked_,
                            .free = free,
                            .strategy = strategy,
                            .disk_bytes = disk_bytes_,
                            .terms = terms_,
                            .most_work = most_work});
  }
  [[nodiscard]] std::int64_t bytes(const PlannedStep& step) const {
    return scarce_bytes(step.needs, machine_);
  }
  [[nodiscard]] static double seconds(const PlannedStep& step) {
    return step.forecast.step_seconds;
  }
  /// Returns budgets from the need of the fastest step down to about the least.
  [[nodiscard]] std::vector<std::int64_t> budgets() const {
    const PlannerAnswer least = plan(1);
    std::vector<std::int64_t> all;
    const auto low = static_cast<double>(bytes(*least.smallest));
    const auto high = static_cast<double>(bytes(*plan(runtime::kUnlimited).unlimited));
    for (int i = 0; i <= 8; ++i) all.push_back(std::llround(high * std::pow(low / high, i / 8.0)));
    all.back() = std::llround(low * 1.03);  // balanced keeps 2 % free
    return all;
  }

  compile::TrainingModel model_ = small_training(4);
  machine::Machine machine_;
  runtime::Plan frame_;
  Choices asked_;
  std::int64_t disk_bytes_ = runtime::kUnlimited;
  TargetTerms terms_;
};

class PlanRunOnCpu : public PlanRun {
 protected:
  PlanRunOnCpu() : PlanRun(machine::cpu_machine(2)) {}
};

class PlanRanks : public PlanRun {
 protected:
  PlanRanks() : PlanRun(small_gpu(), 4) {}
};

TEST(MemoryLimitsTest, NoLimitHoldsGuessesBelowZero) {
  const MemoryLimits limits{.device_bytes = 100};  // of host memory and drives there is no limit
  EXPECT_TRUE(limits.hold({.device = 100, .host = -24}, false));
  EXPECT_FALSE(limits.hold({.device = 101, .host = -24}, false));
}

TEST_F(PlanRanks, OtherBitsAreTold) {
  asked_.micro_batch = 2;
  asked_.micro_steps = 4;
  Freedom free;
  free.micro_batch = free.order = free.sums = false;
  std::set<bool> told;
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget, Strategy::balanced, free);
    if (!answer.chosen) continue;
    const Choices& chosen = answer.chosen->choices;
    EXPECT_EQ(answer.other_bits, zero::shards_gradients(chosen.sharding) && !chosen.layer_major);
    told.insert(answer.other_bits);
  }
  EXPECT_EQ(told, (std::set{false, true}));
}

TEST_F(PlanRun, WhatFitsStaysAsItWasAsked) {
  const PlannerAnswer answer = plan(runtime::kUnlimited);
  ASSERT_TRUE(answer.chosen);
  EXPECT_TRUE(answer.is_asked);
  EXPECT_EQ(answer.chosen->choices, asked_);
  EXPECT_EQ(answer.refusal, PlannerRefusal::none);
}

TEST_F(PlanRun, BudgetsAreKeptAndLargerOnesAreNotSlower) {
  double slowest = 0;
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget);
    ASSERT_TRUE(answer.chosen) << budget;
    EXPECT_LE(bytes(*answer.chosen), budget);
    EXPECT_EQ(answer.chosen->choices.micro_batch * answer.chosen->choices.micro_steps, 8);
    EXPECT_GE(seconds(*answer.chosen), slowest * 0.98) << budget;
    slowest = std::max(slowest, seconds(*answer.chosen));
  }
}

TEST_F(PlanRunOnCpu, BudgetsOfAProcessAreKept) {
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget);
    ASSERT_TRUE(answer.chosen) << budget;
    EXPECT_LE(bytes(*answer.chosen), budget);
  }
}

TEST_F(PlanRun, ARefusalNamesTheLeastThatWorks) {
  const PlannerAnswer refused = plan(1);
  EXPECT_FALSE(refused.chosen);
  EXPECT_EQ(refused.refusal, PlannerRefusal::too_large);
  ASSERT_TRUE(refused.smallest);
  const auto least =
      static_cast<double>(bytes(*refused.smallest)) / share_of_budget(Strategy::balanced);
  EXPECT_TRUE(plan(std::llround(std::ceil(least))).chosen);
  EXPECT_FALSE(plan(std::llround(least * 0.99)).chosen);
}

/// Expects that each strategy takes the target that its refusal names, and no target that is less
/// by a hundredth.
void expect_exact_floors(const std::function<PlannerAnswer(std::int64_t, Strategy)>& plan,
                         const machine::Machine& machine, const TargetTerms& terms) {
  for (const Strategy strategy :
       {Strategy::conservative, Strategy::balanced, Strategy::aggressive, Strategy::maximum}) {
    SCOPED_TRACE(name_of(strategy));
    const auto named = [&](const PlannerAnswer& answer) {
      const auto& works = answer.accepted ? answer.accepted : answer.smallest;
      return least_target(scarce_bytes(works->needs, machine), strategy, terms);
    };
    const auto within = [&](std::int64_t target) {
      return plan(target - terms.beside_bytes, strategy);
    };
    const std::int64_t least = named(within(terms.beside_bytes + 1));
    EXPECT_TRUE(within(least).chosen) << least;
    const std::int64_t less = scaled(least, 0.99);
    const PlannerAnswer refused = within(less);
    EXPECT_FALSE(refused.chosen) << less << " of " << least;
    if (!refused.chosen) {
      EXPECT_EQ(named(refused), least);
    }
  }
}

TEST_F(PlanRun, TheLeastThatEachStrategyNamesIsExact) {
  terms_.beside_bytes = 3'000'000;
  for (const std::int64_t unit : {1, 100'000}) {
    terms_.most_unit_bytes = unit;
    expect_exact_floors(
        [&](std::int64_t bytes, Strategy strategy) { return plan(bytes, strategy); }, machine_,
        terms_);
  }
}

TEST_F(PlanRunOnCpu, TheLeastThatEachStrategyNamesIsExact) {
  terms_ = {.beside_bytes = 3'000'000, .most_unit_bytes = 100'000};
  for (const std::int64_t micro_batch : {1, 4, 8}) {
    asked_.micro_batch = micro_batch;
    expect_exact_floors(
        [&](std::int64_t bytes, Strategy strategy) { return plan(bytes, strategy); }, machine_,
        terms_);
  }
}

TEST_F(PlanRun, WhatWasGivenStays) {
  Freedom free;
  free.micro_batch = free.saved = false;
  const std::vector<std::int64_t> all = budgets();
  const PlannerAnswer answer = plan(all[4], Strategy::balanced, free);
  if (answer.chosen) {
    EXPECT_EQ(answer.chosen->choices.micro_batch, asked_.micro_batch);
    EXPECT_EQ(answer.chosen->choices.again, asked_.again);
  }
  free = {false, false, false, false, false, false, false, false, Home::disk};
  EXPECT_FALSE(plan(all[4], Strategy::balanced, free).chosen);
}

/// Homes stay, and only what becomes of saved values is open.
Freedom only_saved() {
  Freedom free;
  free.micro_batch = free.order = free.sums = free.optimizer = free.parameters = false;
  return free;
}

TEST_F(PlanRunOnCpu, SavedValuesGetActionsOfTheirOwnWhereStepsBecomeFaster) {
  int found = 0;
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget, Strategy::balanced, only_saved());
    if (!answer.chosen || answer.chosen->choices.actions.empty()) continue;
    ++found;
    const PlannedStep& step = *answer.chosen;
    EXPECT_EQ(step.choices.again, Again::nothing);
    EXPECT_EQ(step.choices.activations, Home::device);
    EXPECT_EQ(step.plan.saved, step.choices.actions);
    EXPECT_LE(bytes(step), budget);
    // The step is the last that was tried, and faster than all that fitted before.
    ASSERT_FALSE(answer.attempts.empty());
    EXPECT_EQ(answer.attempts.back().choices, step.choices);
    EXPECT_EQ(answer.attempts.back().seconds, seconds(step));
  }
  EXPECT_GT(found, 0);
}

TEST_F(PlanRun, ActionsThatWereGivenStay) {
  asked_.actions = {{1, 1, {{"0.norm", runtime::SavedAction::recompute}}}};
  const PlannerAnswer roomy = plan(runtime::kUnlimited);
  ASSERT_TRUE(roomy.chosen);
  EXPECT_EQ(roomy.chosen->plan.saved, asked_.actions);
  Freedom free;
  free.saved = free.activations = false;
  int found = 0;
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget, Strategy::balanced, free);
    if (!answer.chosen || answer.is_asked) continue;
    ++found;
    EXPECT_EQ(answer.chosen->choices.actions, asked_.actions);
    EXPECT_EQ(answer.chosen->choices.again, Again::nothing);
  }
  EXPECT_GT(found, 0);
}

TEST_F(PlanRun, ConservativeKeepsOffTheDiskAndRefusesSlowSteps) {
  const std::vector<std::int64_t> all = budgets();
  for (const std::int64_t budget : all) {
    const PlannerAnswer answer = plan(budget, Strategy::conservative);
    const std::optional<PlannedStep>& step = answer.chosen ? answer.chosen : answer.fitting;
    if (!step) continue;
    EXPECT_LE(static_cast<double>(bytes(*step)), 0.95 * static_cast<double>(budget));
    EXPECT_NE(step->choices.optimizer, Home::disk);
    EXPECT_EQ(answer.slowdown(*step) > 1.15, answer.refusal == PlannerRefusal::too_slow);
  }
  EXPECT_NE(plan(all.back(), Strategy::conservative).refusal, PlannerRefusal::none);
}

TEST_F(PlanRun, StrategiesTradeTimeForMemory) {
  const std::int64_t ample = bytes(*plan(runtime::kUnlimited).unlimited) * 2;
  const PlannerAnswer aggressive = plan(ample, Strategy::aggressive);
  const PlannerAnswer maximum = plan(ample, Strategy::maximum);
  ASSERT_TRUE(aggressive.chosen && maximum.chosen);
  EXPECT_LE(aggressive.slowdown(*aggressive.chosen), 1.4);
  EXPECT_LT(bytes(*aggressive.chosen), bytes(*aggressive.unlimited));
  EXPECT_LE(bytes(*maximum.chosen), bytes(*aggressive.chosen));
}

TEST_F(PlanRun, MaximumPlansWhereNothingMayLeaveTheDevice) {
  Freedom free;
  free.farthest = Home::device;
  const std::int64_t ample = bytes(*plan(runtime::kUnlimited).unlimited) * 2;
  const PlannerAnswer maximum = plan(ample, Strategy::maximum, free);
  ASSERT_TRUE(maximum.chosen);
  const std::int64_t least = bytes(*maximum.chosen);
  EXPECT_TRUE(plan(least, Strategy::maximum, free).chosen);
  const PlannerAnswer less = plan(least * 99 / 100, Strategy::maximum, free);
  EXPECT_FALSE(less.chosen);
  EXPECT_EQ(less.refusal, PlannerRefusal::too_large);
}

TEST_F(PlanRun, StrategiesThatDemandFastStepsTakeTheLeastThatTheyNameAndAllMore) {
  Freedom free;
  free.micro_batch = false;
  for (const Strategy strategy : {Strategy::conservative, Strategy::aggressive}) {
    SCOPED_TRACE(name_of(strategy));
    const PlannerAnswer refused = plan(1, strategy, free);
    EXPECT_FALSE(refused.chosen);
    ASSERT_TRUE(refused.accepted);
    EXPECT_LE(refused.slowdown(*refused.accepted), most_slowdown(strategy));
    const auto least = static_cast<double>(bytes(*refused.accepted)) / share_of_budget(strategy);
    for (const double times : {1.0, 1.1, 1.6, 3.0}) {
      const PlannerAnswer answer = plan(std::llround(std::ceil(least * times)), strategy, free);
      ASSERT_TRUE(answer.chosen) << times;
      EXPECT_LE(answer.slowdown(*answer.chosen), most_slowdown(strategy)) << times;
    }
    // They may find a fast step by chance, but not far below.
    const PlannerAnswer below = plan(std::llround(least * 0.98), strategy, free);
    if (below.chosen) {
      EXPECT_LE(below.slowdown(*below.chosen), most_slowdown(strategy));
    }
    EXPECT_FALSE(plan(std::llround(least * 0.9), strategy, free).chosen);
  }
}

TEST_F(PlanRun, WhatIsTooSlowForAStrategyIsTheFastestThatFits) {
  const PlannerAnswer none = plan(1, Strategy::aggressive);
  ASSERT_TRUE(none.accepted && none.smallest);
  const auto low = static_cast<double>(bytes(*none.smallest)),
             high = static_cast<double>(bytes(*none.accepted));
  int faster = 0;
  for (const double part : {0.3, 0.6, 0.9}) {
    const std::int64_t budget = std::llround(low + part * (high - low));
    const PlannerAnswer answer = plan(budget, Strategy::aggressive);
    const std::optional<PlannedStep>& step = answer.chosen ? answer.chosen : answer.fitting;
    ASSERT_TRUE(step) << part;
    EXPECT_LE(bytes(*step), budget) << part;
    EXPECT_EQ(answer.slowdown(*step) > most_slowdown(Strategy::aggressive),
              answer.refusal == PlannerRefusal::too_slow);
    const PlannerAnswer fastest = plan(budget, Strategy::balanced);
    if (!fastest.chosen) continue;
    EXPECT_LE(seconds(*step), 1.02 * seconds(*fastest.chosen)) << part;
    faster += seconds(*step) < 0.99 * seconds(*none.smallest);
  }
  EXPECT_GT(faster, 0);
}

TEST_F(PlanRun, TheLeastThatWorksDoesNotGrowWithDrivesAndHostMemory) {
  const PlannedStep away = *plan(1).smallest;
  const auto state = static_cast<double>(away.needs.host + away.needs.disk);
  std::vector<std::int64_t> of_smaller_host;
  for (const double host : {0.3, 0.7}) {
    frame_.host_bytes = std::llround(host * state);
    std::vector<std::int64_t> floors;
    for (const double disk : {0.0, 0.3, 0.5, 0.7, 1.0}) {
      disk_bytes_ = std::llround(disk * state);
      const std::optional<PlannedStep> least = plan(1).smallest;
      ASSERT_TRUE(least);
      const MemoryLimits others{.host_bytes = frame_.host_bytes, .disk_bytes = disk_bytes_};
      const bool works = others.hold(least->needs, true);
      floors.push_back(works ? bytes(*least) : runtime::kUnlimited);
      SCOPED_TRACE(testing::Message() << host << " of the state in host memory, " << disk);
      const std::size_t at = floors.size() - 1;
      EXPECT_LE(floors[at], at > 0 ? floors[at - 1] : runtime::kUnlimited);
      EXPECT_LE(floors[at], of_smaller_host.empty() ? runtime::kUnlimited : of_smaller_host[at]);
      if (!works) continue;
      const double target =
          static_cast<double>(bytes(*least)) / share_of_budget(Strategy::balanced);
      EXPECT_TRUE(plan(std::llround(std::ceil(target))).chosen);
    }
    EXPECT_LT(floors.back(), runtime::kUnlimited);
    of_smaller_host = floors;
  }
}

TEST_F(PlanRun, EqualRequestsGetEqualAnswers) {
  const std::int64_t budget = budgets()[3];
  const PlannerAnswer first = plan(budget), second = plan(budget);
  EXPECT_EQ(first.chosen->plan, second.chosen->plan);
  EXPECT_EQ(first.work, second.work);
}

TEST_F(PlanRun, DrivesHoldWhatIsPlannedForThem) {
  asked_.optimizer = Home::disk;
  Freedom free;
  free.optimizer = false;
  const PlannerAnswer any = plan(runtime::kUnlimited, Strategy::balanced, free);
  ASSERT_TRUE(any.chosen);
  ASSERT_GT(any.chosen->needs.disk, 1000);
  disk_bytes_ = any.chosen->needs.disk;
  EXPECT_TRUE(plan(runtime::kUnlimited, Strategy::balanced, free).chosen);
  --disk_bytes_;
  EXPECT_FALSE(plan(runtime::kUnlimited, Strategy::balanced, free).chosen);
}

TEST_F(PlanRun, DrivesHoldTheSavedValuesThatArePlannedForThem) {
  asked_.activations = Home::disk;
  Freedom free;
  free.activations = false;
  int planned = 0;
  for (const std::int64_t budget : budgets()) {
    disk_bytes_ = runtime::kUnlimited;
    const PlannerAnswer any = plan(budget, Strategy::balanced, free);
    if (!any.chosen || any.chosen->needs.disk == 0) continue;
    for (const int part : {2, 10}) {
      disk_bytes_ = any.chosen->needs.disk / part;
      const PlannerAnswer less = plan(budget, Strategy::balanced, free);
      if (!less.chosen) continue;
      ++planned;
      EXPECT_LE(less.chosen->needs.disk, disk_bytes_) << budget;
    }
  }
  EXPECT_GT(planned, 0);
}

TEST_F(PlanRun, WorkIsLimited) {
  const PlannerAnswer answer = plan(budgets()[5], Strategy::balanced, {}, 1);
  EXPECT_FALSE(answer.complete);
  ASSERT_TRUE(answer.chosen);
  EXPECT_EQ(answer.attempts.size(), 1) << "without settings that hinder nothing else is compiled";
}

/// Without such a setting a step would be faster, as compiled in full.
TEST_F(PlanRun, NoSettingThatHindersIsKept) {
  Freedom fewer;
  fewer.farthest = Home::host;
  fewer.order = false;
  for (const Freedom& free : {Freedom{}, fewer})
    for (const std::int64_t budget : budgets()) {
      const PlannerAnswer answer = plan(budget, Strategy::balanced, free);
      if (!answer.chosen || answer.is_asked) continue;
      EXPECT_LE(answer.chosen->choices.optimizer, free.farthest);
      EXPECT_TRUE(free.order || !answer.chosen->choices.layer_major);
      for (const PricedChange& reason : answer.reasons) {
        SCOPED_TRACE(testing::Message() << budget << ": " << name_of(reason.setting));
        EXPECT_FALSE(reason.fits && reason.slowdown() < -0.02);
      }
    }
}

/// A search of its own, which may end early alone, looks for what a refusal names.
TEST_F(PlanRun, ARefusalTellsThatItsOwnSearchEndedEarly) {
  for (const Strategy strategy : {Strategy::conservative, Strategy::aggressive})
    EXPECT_FALSE(plan(1, strategy, {}, 1).complete) << name_of(strategy);
}

TEST_F(PlanRun, SharesOfStateThatLeaveTheDeviceAreFinerThanQuarters) {
  int finer = 0;
  for (const std::int64_t budget : budgets()) {
    const PlannerAnswer answer = plan(budget);
    if (!answer.chosen || answer.chosen->choices.optimizer == Home::device) continue;
    const double quarters = 4 * answer.chosen->choices.optimizer_part;
    finer += quarters != std::floor(quarters);
  }
  EXPECT_GT(finer, 0);
}

TEST_F(PlanRun, WhereHostMemoryBindsAsMuchStateLeavesTheDeviceAsItHolds) {
  Freedom fixed;
  fixed.micro_batch = fixed.order = fixed.sums = fixed.activations = false;
  fixed.saved = fixed.parameters = false;
  set_again_part(asked_, 1);
  const Choices asked = asked_;
  asked_.optimizer = Home::host;
  asked_.optimizer_part = 15.0 / 16;
  const MemoryNeeds needs = plan(runtime::kUnlimited).chosen->needs;
  asked_ = asked;
  disk_bytes_ = 0;
  fixed.farthest = Home::host;
  for (const double host : {1.0, 1.03}) {
    frame_.host_bytes = std::llround(host * static_cast<double>(needs.host));
    const double enough = static_cast<double>(needs.device) / share_of_budget(Strategy::balanced);
    const PlannerAnswer answer =
        plan(std::llround(std::ceil(1.01 * enough)), Strategy::balanced, fixed);
    ASSERT_TRUE(answer.chosen) << host;
    EXPECT_LE(answer.chosen->needs.host, frame_.host_bytes);
    const PlannerAnswer least = plan(1, Strategy::balanced, fixed);
    EXPECT_LE(bytes(*least.smallest), needs.device) << host;
    EXPECT_LE(least.smallest->needs.host, frame_.host_bytes);
  }
}

TEST_F(PlanRun, ContradictionsAreRefused) {
  asked_.updates = runtime::Updates::gradient;
  model_.control.set("clip", 1.0);
  EXPECT_THROW((void)plan(1 << 20), InvalidArgument);
}

TEST_F(PlanRanks, HigherStagesAreChosenWhereMemoryIsShort) {
  const std::vector<std::int64_t> all = budgets();
  const PlannerAnswer answer = plan(all[5]);
  ASSERT_TRUE(answer.chosen);
  EXPECT_LE(bytes(*answer.chosen), all[5]);
  EXPECT_GT(answer.chosen->choices.sharding.stage, 0);
}

}  // namespace
}  // namespace strata::plan

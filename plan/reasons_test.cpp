#include "plan/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "plan/planner.h"
#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using runtime::Tier;

runtime::Plan frame_on(const machine::Machine& machine, int ranks) {
  runtime::Plan frame = small_frame(ranks);
  frame.backend = machine.device.capabilities.backend;
  return frame;
}

class Prices : public testing::Test {
 protected:
  explicit Prices(machine::Machine machine = small_gpu(), int ranks = 4)
      : machine_(std::move(machine)), frame_(frame_on(machine_, ranks)) {}

  [[nodiscard]] PriceList prices(const MemoryLimits& limits = {}) {
    return {estimates_, search_, limits};
  }
  [[nodiscard]] MemoryNeeds guess(const Choices& choices) {
    return estimates_.guess(choices).needs;
  }
  [[nodiscard]] std::vector<PricedChange> taken_back(const ChosenStep& step,
                                                     const MemoryLimits& limits = {}) {
    return prices(limits).taken_back(step, asked_,
                                     [&](const Choices& choices) { return guess(choices); });
  }
  [[nodiscard]] PlannerAnswer plan(std::int64_t bytes, const Freedom& free) const {
    Search search = search_;
    if (machine_.host_is_device())
      search.plan.host_bytes = bytes;
    else
      search.plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = bytes;
    return plan_for_budget(
        {.search = search, .asked = asked_, .free = free, .disk_bytes = disk_bytes_});
  }

  compile::TrainingModel model_ = small_training(4);
  machine::Machine machine_;
  runtime::Plan frame_;
  /// Units of any size may move.
  Choices asked_{
      .sharding = {.persistence_threshold_elements = 0}, .micro_batch = 4, .micro_steps = 4};
  Search search_{model_, frame_, machine_, {frame_.mesh, {}}};
  StepEstimates estimates_{search_, asked_};
  std::int64_t disk_bytes_ = runtime::kUnlimited;
};

class PricesOfOneRank : public Prices {
 protected:
  PricesOfOneRank() : Prices(small_gpu(), 1) {}

  /// Returns the host memory for a quarter of the optimizer's state.
  [[nodiscard]] std::int64_t host_for_quarter() {
    Choices quarter = asked_;
    quarter.optimizer = Home::host;
    quarter.optimizer_part = 0.25;
    return guess(quarter).host;
  }
};

class PricesOnCpu : public Prices {
 protected:
  PricesOnCpu() : Prices(machine::cpu_machine(2), 1) {}
};

const PricedChange* find(const std::vector<PricedChange>& changes, Setting setting) {
  const auto at = std::ranges::find(changes, setting, &PricedChange::setting);
  return at == changes.end() ? nullptr : &*at;
}

TEST_F(Prices, EachSettingIsTakenBackAlone) {
  Choices chosen = asked_;
  chosen.sharding.stage = 2;
  chosen.micro_batch = 2;
  chosen.micro_steps = 8;
  set_again_part(chosen, 0.5);
  chosen.optimizer = Home::host;
  const auto reasons = taken_back({chosen, chosen, 0});
  ASSERT_EQ(reasons.size(), 4);
  const PricedChange& stage = *find(reasons, Setting::stage);
  Choices unsharded = chosen;
  unsharded.sharding.stage = 0;
  EXPECT_EQ(stage.choices, unsharded);
  EXPECT_EQ(stage.more.device, guess(unsharded).device - guess(chosen).device);
  EXPECT_GT(stage.more.device, 0);
  // Two fp32 moments and master weights or gradients of a quarter of the parameters come back.
  const PricedChange& optimizer = *find(reasons, Setting::optimizer);
  EXPECT_EQ(optimizer.choices.optimizer, Home::device);
  EXPECT_GT(optimizer.more.device, 0);
  EXPECT_LT(optimizer.more.host, 0);
  const PricedChange& saved = *find(reasons, Setting::saved);
  EXPECT_EQ(saved.choices.again, Again::nothing);
  EXPECT_GT(saved.more.device, 0);
  EXPECT_EQ(saved.more.host, 0);
  EXPECT_EQ(find(reasons, Setting::micro_batch)->choices.micro_steps, 4);
}

/// Compiles the choice with and without a setting: the guessed difference is about the real one.
TEST_F(Prices, DifferencesAreThoseOfCompiledPrograms) {
  Choices chosen = asked_;
  chosen.sharding.stage = 2;
  chosen.micro_batch = 1;
  chosen.micro_steps = 16;
  chosen.optimizer = Home::host;
  set_again_part(chosen, 1);
  const StepEstimate with = *estimates_.bound(chosen);
  for (const PricedChange& reason : taken_back({chosen, chosen, 0})) {
    const StepEstimate without = *estimates_.bound(reason.choices);
    const auto more = static_cast<double>(without.needs.device - with.needs.device);
    EXPECT_NEAR(static_cast<double>(reason.more.device), more,
                0.05 * static_cast<double>(with.needs.device))
        << name_of(reason.setting);
    EXPECT_NEAR(reason.seconds, without.seconds - with.seconds, 0.1 * with.seconds)
        << name_of(reason.setting);
  }
}

TEST_F(Prices, WhatWouldNotFitIsTold) {
  Choices chosen = asked_;
  chosen.sharding.stage = 1;
  set_again_part(chosen, 1);
  Choices kept = chosen;
  set_again_part(kept, 0);
  const std::int64_t enough = guess(kept).device;
  for (const std::int64_t limit : {enough, enough - 1}) {
    const auto reasons = taken_back({chosen, chosen, 0}, {.device_bytes = limit});
    EXPECT_EQ(find(reasons, Setting::saved)->fits, limit == enough);
  }
  // To shard less needs more; to recompute less where nothing is recomputed cannot matter.
  const auto reasons = taken_back({chosen, chosen, 0}, {.device_bytes = 1});
  EXPECT_TRUE(std::ranges::none_of(reasons, &PricedChange::fits));
}

TEST_F(Prices, ActionsArePricedByTheShareThatTheyReplaced) {
  Choices by_share = asked_, chosen = asked_;
  set_again_part(by_share, 1);
  by_share.activations = Home::host;
  chosen.actions = {{1, 1, {{"0.norm", runtime::SavedAction::recompute}}}};
  const auto reasons = taken_back({chosen, by_share, 0.25});
  ASSERT_EQ(reasons.size(), 1);
  EXPECT_EQ(reasons[0].setting, Setting::saved);
  EXPECT_EQ(reasons[0].choices, asked_);
  EXPECT_EQ(reasons[0].more.device, guess(asked_).device - guess(by_share).device);
  EXPECT_DOUBLE_EQ(reasons[0].seconds,
                   estimates_.guess(asked_).seconds - estimates_.guess(by_share).seconds + 0.25);
}

TEST_F(Prices, SettingsThatContradictTheOthersAreTold) {
  Choices chosen = asked_;
  asked_.sharding.stage = 2;
  chosen.sharding.stage = 3;
  chosen.optimizer = chosen.parameters = Home::disk;
  const auto reasons = taken_back({chosen, chosen, 0});
  EXPECT_TRUE(find(reasons, Setting::stage)->contradicts);  // their shards cannot be on a drive
  EXPECT_FALSE(find(reasons, Setting::stage)->fits);
  EXPECT_FALSE(find(reasons, Setting::parameters)->contradicts);
}

TEST_F(Prices, SingleChangesComeByBytesForTheirTime) {
  const auto changes = prices().single_changes(asked_, Home::disk);
  std::set<Setting> kinds;
  double before = std::numeric_limits<double>::infinity();
  for (const PricedChange& change : changes) {
    kinds.insert(change.setting);
    EXPECT_LT(change.more.device, -guess(asked_).device / 100);
    EXPECT_EQ(change.more.device, guess(change.choices).device - guess(asked_).device);
    EXPECT_EQ(change.choices.micro_batch * change.choices.micro_steps, 16);
    const double gain =
        static_cast<double>(-change.more.device) / std::max(change.slowdown(), 0.0005);
    EXPECT_LE(gain, before);
    before = gain;
  }
  using enum Setting;
  for (const Setting kind : {stage, micro_batch, saved, activations, parameters, optimizer})
    EXPECT_TRUE(kinds.contains(kind)) << name_of(kind);
}

TEST_F(Prices, WhereHostMemoryIsShortItIsPriced) {
  asked_.optimizer = Home::host;
  const MemoryLimits limits{.host_bytes = guess(asked_).host - 1};
  const auto changes = prices(limits).single_changes(asked_, Home::disk);
  ASSERT_FALSE(changes.empty());
  for (const PricedChange& change : changes) EXPECT_LT(change.more.host, 0);
  EXPECT_NE(find(changes, Setting::stage), nullptr);
  EXPECT_EQ(find(changes, Setting::saved), nullptr);
}

/// A quarter of the state is more than host memory holds.
TEST_F(PricesOfOneRank, AsMuchStateMayLeaveAsHostMemoryHolds) {
  const std::int64_t host = host_for_quarter() * 8 / 10;
  const auto changes =
      prices({.host_bytes = host, .disk_bytes = 0}).single_changes(asked_, Home::host);
  const PricedChange* optimizer = find(changes, Setting::optimizer);
  ASSERT_TRUE(optimizer);
  EXPECT_LT(optimizer->choices.optimizer_part, 0.25);
  EXPECT_LE(optimizer->needs.host, host);
}

TEST_F(PricesOfOneRank, WhatASettingForbidsIsHeldByHostMemoryAndDrives) {
  Freedom given;
  given.optimizer = false;
  for (const double of_host : {0.8, 1.3, 2.3})
    for (const double of_drives : {0.0, 0.7}) {
      SCOPED_TRACE(testing::Message() << of_host << " of a quarter, " << of_drives);
      const auto quarter = static_cast<double>(host_for_quarter());
      search_.plan.host_bytes = std::llround(of_host * quarter);
      disk_bytes_ = std::llround(of_drives * quarter);
      const PlannerAnswer refused = plan(1, given);
      ASSERT_TRUE(refused.smallest);
      const PricedChange* freed = find(refused.forbidden, Setting::optimizer);
      ASSERT_TRUE(freed);
      EXPECT_LE(freed->needs.host, search_.plan.host_bytes);
      EXPECT_LE(freed->needs.disk, disk_bytes_);
      const auto left_open = static_cast<double>(plan(1, {}).smallest->needs.device);
      const std::int64_t told = refused.smallest->needs.device + freed->more.device;
      EXPECT_NEAR(static_cast<double>(told), left_open, 0.1 * left_open);
    }
}

/// No target gives room on drives, so that less there helps though it takes more of the device.
TEST_F(PricesOfOneRank, ASettingThatIsTooMuchForDrivesIsNamed) {
  search_.plan.host_bytes = host_for_quarter();
  disk_bytes_ = 1000;
  asked_.optimizer = Home::disk;
  Freedom given;
  given.optimizer = false;
  const PlannerAnswer refused = plan(1, given);
  ASSERT_TRUE(refused.smallest);
  ASSERT_GT(refused.smallest->needs.disk, disk_bytes_);
  const PricedChange* freed = find(refused.forbidden, Setting::optimizer);
  ASSERT_TRUE(freed);
  EXPECT_LE(freed->needs.disk, disk_bytes_);
  EXPECT_LE(freed->needs.host, search_.plan.host_bytes);
}

TEST_F(PricesOnCpu, ItsMemoryIsOne) {
  asked_.optimizer = Home::host;
  const auto changes = prices().single_changes(asked_, Home::disk);
  ASSERT_FALSE(changes.empty());
  for (const PricedChange& change : changes) {
    EXPECT_LT(change.more.device + change.more.host, 0);
    EXPECT_NE(change.choices.parameters, Home::host);
  }
}

/// Plans with a setting left open, and finds what was said about leaving it open.
TEST_F(Prices, WhatGivenSettingsForbidIsWhatPlanningWithoutThemFinds) {
  Freedom given;
  given.micro_batch = given.order = false;
  given.farthest = Home::device;
  const PlannerAnswer refused = plan(1, given);
  ASSERT_EQ(refused.refusal, PlannerRefusal::too_large);
  EXPECT_FALSE(refused.changes.empty());
  ASSERT_TRUE(find(refused.forbidden, Setting::micro_batch));
  ASSERT_TRUE(find(refused.forbidden, Setting::farthest));
  EXPECT_EQ(find(refused.forbidden, Setting::stage), nullptr) << "it is free";
  EXPECT_EQ(refused.forbidden.back().setting, Setting::all);
  for (const PricedChange& freed : refused.forbidden) {
    Freedom more = given;
    if (freed.setting == Setting::micro_batch) more.micro_batch = true;
    if (freed.setting == Setting::order) more.order = true;
    if (freed.setting == Setting::farthest) more.farthest = Home::disk;
    if (freed.setting == Setting::all) more = {};
    const PlannerAnswer least = plan(1, more);
    const std::int64_t told = refused.smallest->needs.device + freed.more.device;
    // What is told leaves out what a schedule saves, which is much of so small a model.
    EXPECT_GE(told, least.smallest->needs.device * 95 / 100) << name_of(freed.setting);
    EXPECT_LE(told, least.smallest->needs.device * 120 / 100) << name_of(freed.setting);
  }
}

TEST_F(Prices, SettingsThatForbidTogetherAreFreedTogether) {
  Freedom given;
  given.micro_batch = given.order = given.saved = given.activations = given.parameters = false;
  given.optimizer = false;
  given.farthest = Home::device;  // homes that may move cannot, and homes that can may not
  asked_.sharding.stage = 3;
  Choices smallest = asked_;
  const auto all = prices().forbidden(asked_, given, smallest);
  EXPECT_EQ(find(all, Setting::optimizer), nullptr);
  EXPECT_EQ(find(all, Setting::farthest), nullptr);
  ASSERT_NE(find(all, Setting::all), nullptr);
  EXPECT_NE(find(all, Setting::all)->choices.optimizer, Home::device);
  // One that is given alone is named alone.
  given = {};
  given.saved = false;
  const auto alone = prices().forbidden(asked_, given, smallest);
  ASSERT_EQ(alone.size(), 1);
  EXPECT_EQ(alone[0].setting, Setting::saved);
}

TEST_F(Prices, AnswersSayWhatEachChangedSettingIsFor) {
  const std::int64_t budget = guess(asked_).device * 6 / 10;
  const PlannerAnswer answer = plan(budget, {});
  ASSERT_TRUE(answer.chosen);
  ASSERT_FALSE(answer.reasons.empty());
  EXPECT_TRUE(answer.changes.empty() && answer.forbidden.empty());
  for (const PricedChange& reason : answer.reasons)
    EXPECT_NE(reason.choices, answer.chosen->choices);
  EXPECT_TRUE(plan(runtime::kUnlimited, {}).reasons.empty());
}

}  // namespace
}  // namespace strata::plan

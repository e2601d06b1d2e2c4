#include "plan/find_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "plan/choices.h"
#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using compile::Compiled;
using runtime::SaveMemory;
using runtime::Tier;

class FindPlan : public testing::Test {
 protected:
  [[nodiscard]] Search search(const Choices& choices, int ranks = 1, int rank = 0) const {
    const runtime::Plan plan = with_choices(small_frame(ranks), choices, model_.build);
    return {model_, plan, machine_, {plan.mesh, comm::point_of(plan.mesh, rank)}};
  }
  /// Keeps optimizer state on the disk, gradients in host memory; the device gets all it can use.
  [[nodiscard]] Search on_disk(int ranks = 1, int rank = 0) const {
    Choices choices;
    choices.sharding.stage = ranks > 1 ? 1 : 0;
    choices.optimizer = Home::disk;
    Search asked = search(choices, ranks, rank);
    asked.plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = 1 << 30;
    return asked;
  }
  static std::int64_t host_bytes(const Compiled& found) {
    return found.programs.arena_bytes(Tier::pinned) + found.programs.arena_bytes(Tier::pageable);
  }
  static const runtime::Plan& plan_of(const Compiled& found) {
    return found.programs.settings.plan;
  }

  compile::TrainingModel model_ = small_training();
  machine::Machine machine_ = machine::cpu_machine(1);
};

TEST_F(FindPlan, APlanWithNothingOpenIsTheAnswer) {
  const Search asked = search({});
  const Compiled found = find_plan(asked);
  EXPECT_TRUE(found.fit.fits());
  EXPECT_EQ(plan_of(found), asked.plan);
}

TEST_F(FindPlan, TheFirstWayOfSavingThatIsAcceptedIsTaken) {
  Search asked = search({});
  asked.savings = {SaveMemory::snapshot, SaveMemory::writing, SaveMemory::none};
  EXPECT_EQ(plan_of(find_plan(asked)).saving, SaveMemory::snapshot);
  std::vector<SaveMemory> offered;
  asked.accepts = [&](const Compiled& found) {
    offered.push_back(plan_of(found).saving);
    return offered.size() == 2;
  };
  EXPECT_EQ(plan_of(find_plan(asked)).saving, SaveMemory::writing);
  asked.accepts = [&](const Compiled& found) {
    offered.push_back(plan_of(found).saving);
    return false;
  };
  EXPECT_EQ(plan_of(find_plan(asked)).saving, SaveMemory::none) << "the last is not asked about";
  EXPECT_EQ(offered, (std::vector{SaveMemory::snapshot, SaveMemory::writing, SaveMemory::snapshot,
                                  SaveMemory::writing}));
}

TEST_F(FindPlan, WhereNothingFitsTheLastWayOfSavingSaysWhy) {
  Search asked = search({});
  asked.plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = 1;
  asked.savings = {SaveMemory::snapshot, SaveMemory::writing};
  const Compiled found = find_plan(asked);
  EXPECT_FALSE(found.fit.fits());
  EXPECT_EQ(plan_of(found).saving, SaveMemory::writing);
}

/// A snapshot takes host memory that otherwise holds records, which the disk then brings in every
/// step; windows take the disk's time only when the state is saved.
TEST_F(FindPlan, TheWayOfSavingIsTheOneThatCostsTheLeastTime) {
  machine_.disk.read_rate.value = machine_.disk.write_rate.value = 1e7;
  Search asked = on_disk();
  asked.savings = {SaveMemory::snapshot, SaveMemory::windows, SaveMemory::writing};
  const auto saving = [&](std::int64_t host_bytes, std::int64_t every_steps) {
    asked.plan.host_bytes = host_bytes;
    asked.save_every_steps = every_steps;
    const Compiled found = find_plan(asked);
    EXPECT_TRUE(found.fit.fits()) << describe(found.fit);
    EXPECT_TRUE(found.programs.find(compile::ProgramKind::snapshot));
    return plan_of(found).saving;
  };
  EXPECT_EQ(saving(1800 << 10, 1000), SaveMemory::windows);
  EXPECT_EQ(saving(1800 << 10, 1), SaveMemory::snapshot) << "windows would write in every step";
  EXPECT_EQ(saving(64 << 20, 1000), SaveMemory::snapshot) << "all records stay";
  EXPECT_EQ(saving(runtime::kUnlimited, 1000), SaveMemory::snapshot);
}

TEST_F(FindPlan, HostMemoryHoldsTheRecordsThatItHasRoomFor) {
  Search asked = on_disk();
  const auto resident = [](const runtime::Plan& plan) {
    std::int64_t elements = 0;
    for (const runtime::UnitPlan& unit : plan.units) elements += unit.optimizer_host_elements;
    return elements;
  };
  const std::int64_t least = host_bytes(find_plan(asked));
  std::int64_t before = 0;
  for (const std::int64_t more : {16 << 10, 64 << 10, 256 << 10}) {
    asked.plan.host_bytes = least + more;
    const Compiled found = find_plan(asked);
    EXPECT_TRUE(found.fit.fits()) << more;
    EXPECT_GT(resident(plan_of(found)), before) << more;
    before = resident(plan_of(found));
  }
  EXPECT_EQ(before, 73 * 1024) << "all of the model's cells";
}

TEST_F(FindPlan, GradientsGoToTheDiskOnlyWhereHostMemoryIsTooLittle) {
  Search asked = on_disk();
  const auto expect_gradients_in = [&](Tier tier) {
    const Compiled found = find_plan(asked);
    EXPECT_TRUE(found.fit.fits()) << describe(found.fit);
    for (const runtime::UnitPlan& unit : plan_of(found).units)
      EXPECT_EQ(unit.gradient_tier, tier) << unit.unit;
  };
  asked.plan.host_bytes = 64 << 20;
  expect_gradients_in(Tier::pinned);
  asked.plan.host_bytes = 280 << 10;  // gradients alone are 300 KiB
  expect_gradients_in(Tier::disk);
}

/// A Plan that fits without a schedule also fits with one: the search then limits the device's
/// arena.
TEST_F(FindPlan, AHostThatIsTheDeviceHoldsAllThatAPlanTakes) {
  Search asked = on_disk();
  asked.plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = runtime::kUnlimited;
  const auto total = [](const Compiled& found) {
    return found.programs.arena_bytes(Tier::device) + host_bytes(found);
  };
  const std::int64_t most = total(find_plan(asked));
  asked.plan.scheduled = false;
  const std::int64_t least = total(find_plan(asked));
  ASSERT_LT(least, most);
  asked.plan.scheduled = true;
  for (const std::int64_t allowed : {least, (least + most) / 2, most}) {
    asked.plan.host_bytes = allowed;
    const Compiled found = find_plan(asked);
    EXPECT_TRUE(found.fit.fits()) << allowed << describe(found.fit);
    EXPECT_LE(total(found), allowed);
  }
  asked.plan.host_bytes = 100 << 10;
  const Compiled refused = find_plan(asked);
  EXPECT_FALSE(refused.fit.host.fits());
  EXPECT_LE(refused.fit.host.needed_bytes, least) << "the least of this Plan";
}

TEST_F(FindPlan, AllRanksFindThePlanOfTheLargestShards) {
  for (const std::int64_t host : {200 << 10, 400 << 10, 1 << 20}) {
    Search first = on_disk(3, 0), last = on_disk(3, 2);
    first.plan.host_bytes = last.plan.host_bytes = host;
    EXPECT_EQ(plan_of(find_plan(first)), plan_of(find_plan(last))) << host;
  }
}

/// Here reading records ahead pays within the windows of transfers, which the other rank's tiles
/// exceed.
TEST_F(FindPlan, WhatFitsTheLargestShardsFitsEveryRank) {
  model_ = small_training(5);
  machine_.disk.read_rate.value = machine_.disk.write_rate.value = 3e7;
  std::array<runtime::Plan, 2> plans;
  for (const int rank : {0, 1}) {
    Search asked = on_disk(2, rank);
    asked.plan.limits.tile_elements = 8192;
    const Compiled found = find_plan(asked);
    ASSERT_TRUE(found.fit.fits()) << describe(found.fit);
    plans[static_cast<std::size_t>(rank)] = plan_of(found);
  }
  std::int64_t& limit = plans[1].budget_bytes[static_cast<std::size_t>(Tier::pinned)];
  const std::int64_t raised = plans[0].budget_bytes[static_cast<std::size_t>(Tier::pinned)];
  EXPECT_GT(raised, limit);
  EXPECT_LT(raised, limit + limit / 4);
  limit = raised;
  EXPECT_EQ(plans[0], plans[1]);
}

}  // namespace
}  // namespace strata::plan

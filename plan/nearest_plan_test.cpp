#include "plan/nearest_plan.h"

#include <gtest/gtest.h>

#include "plan/neighbours.h"
#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using runtime::Tier;
constexpr std::int64_t kAllWork = std::int64_t{1} << 40;

class FindNearest : public testing::Test {
 protected:
  FindNearest() {
    asked_.micro_batch = 4;
    asked_.optimizer = Home::device;
  }
  [[nodiscard]] NearestSearch nearest(const MachineMemory& memory,
                                      std::int64_t most_work = kAllWork) const {
    return find_nearest({model_, frame_, machine_, {frame_.mesh, {}}}, {asked_, memory}, most_work);
  }
  [[nodiscard]] MemoryNeeds needs(const Choices& choices) const {
    const runtime::Plan plan = with_choices(frame_, choices, model_.build);
    return memory_needs(find_plan({model_, plan, machine_, {plan.mesh, {}}}).programs);
  }

  compile::TrainingModel model_ = small_training(2);
  machine::Machine machine_ = machine::cpu_machine(1);
  runtime::Plan frame_ = small_frame(1);
  Choices asked_;
};

TEST_F(FindNearest, TheCheapestNeighbourThatFitsIsFound) {
  Choices half = asked_, quarter = asked_;
  half.micro_batch = quarter.micro_steps = 2;
  half.micro_steps = 2;
  quarter.micro_batch = 1;
  quarter.micro_steps = 4;
  ASSERT_LT(needs(half).device, needs(asked_).device);
  ASSERT_LT(needs(quarter).device, needs(half).device);
  for (const Choices& fits : {half, quarter}) {
    const NearestSearch search = nearest({1, needs(fits).device, 0});
    EXPECT_TRUE(search.complete);
    ASSERT_TRUE(search.found);
    EXPECT_EQ(search.found->choices, fits);
    EXPECT_EQ(search.found->needs.device, needs(fits).device);
    EXPECT_EQ(search.found->nearness, Nearness::cheapest);
  }
}

TEST_F(FindNearest, RanksOfOneHostShareItsMemory) {
  Choices quarter = asked_;
  quarter.micro_batch = 1;
  quarter.micro_steps = 4;
  const MemoryNeeds needed = needs(quarter);
  const NearestSearch search = nearest({2, {}, 2 * (needed.device + needed.host)});
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->choices, quarter);
}

TEST_F(FindNearest, StateMovesWhereNothingElseFits) {
  Choices least = asked_;
  least.micro_batch = 1;
  least.micro_steps = 4;
  least.again = Again::everything;
  const NearestSearch search = nearest({1, needs(least).device * 3 / 4, 1 << 30});
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->nearness, Nearness::cheapest);
  EXPECT_TRUE(search.found->choices.moves_state());
  EXPECT_LE(search.found->needs.device, needs(least).device * 3 / 4);
}

TEST_F(FindNearest, AsMuchStateMovesAsHostMemoryHolds) {
  machine_ = small_gpu();
  frame_.backend = machine_.device.capabilities.backend;
  Choices held = asked_;
  held.micro_batch = 1;
  held.micro_steps = 4;
  held.again = Again::everything;
  held.optimizer = Home::host;
  held.optimizer_part = 0.5;
  frame_.scheduled = false;  // schedules take as much as they may
  MemoryNeeds most = needs(held);
  most.device = most.device * 26 / 25;
  most.host = most.host * 26 / 25;
  held.optimizer_part = 1;
  ASSERT_GT(needs(held).host, most.host);
  held.optimizer = Home::device;
  ASSERT_GT(needs(held).device, most.device);
  frame_.scheduled = true;
  const NearestSearch search = find_nearest(
      {model_, frame_, machine_, {frame_.mesh, {}}},
      {.asked = asked_, .memory = {1, most.device, most.host}, .farthest = Home::host}, kAllWork);
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->nearness, Nearness::cheapest);
  EXPECT_EQ(search.found->choices.optimizer, Home::host);
  EXPECT_LT(search.found->choices.optimizer_part, 1);
  EXPECT_LE(search.found->needs.device, most.device);
  EXPECT_LE(search.found->needs.host, most.host);
}

TEST_F(FindNearest, NoStateGoesFartherThanItMay) {
  Choices least = asked_;
  least.micro_batch = 1;
  least.micro_steps = 4;
  least.again = Again::everything;
  const MachineMemory memory{1, needs(least).device * 3 / 4, 1 << 30};
  const Search search{model_, frame_, machine_, {frame_.mesh, {}}};
  const auto within = [&](Home farthest) {
    return find_nearest(search, {.asked = asked_, .memory = memory, .farthest = farthest}, kAllWork)
        .found;
  };
  ASSERT_TRUE(within(Home::device) && within(Home::host));
  EXPECT_EQ(within(Home::device)->nearness, Nearness::smallest);
  EXPECT_FALSE(within(Home::device)->choices.moves_state());
  EXPECT_EQ(within(Home::host)->nearness, Nearness::cheapest);
  EXPECT_FALSE(within(Home::host)->choices.uses(Home::disk));
}

TEST_F(FindNearest, WhereNothingFitsTheSmallestIsNamed) {
  const NearestSearch search = nearest({1, {}, 1});
  EXPECT_TRUE(search.complete);
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->nearness, Nearness::smallest);
  for (const Choices& tried : cheapest_first(asked_, frame_))
    EXPECT_LE(search.found->needs.device + search.found->needs.host,
              needs(tried).device + needs(tried).host);
  const NearestSearch further = nearest({1, 1, 0});  // nothing is known about host memory
  ASSERT_TRUE(further.found);
  EXPECT_EQ(further.found->nearness, Nearness::smallest);
  EXPECT_TRUE(further.found->choices.moves_state());
  EXPECT_LT(further.found->needs.device, search.found->needs.device);
}

/// Schedules without a limit take more than the amounts given here.
TEST_F(FindNearest, WhatIsFreeBecomesALimitOnlyWhereItIsNeeded) {
  asked_.optimizer = Home::disk;
  const MemoryNeeds most = needs(asked_);
  const NearestSearch search = nearest({1, {}, most.device + most.host - (64 << 10)});
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->choices, asked_);
  EXPECT_TRUE(search.found->limits.host_bytes);
  EXPECT_FALSE(search.found->limits.device_bytes);
  asked_.optimizer = Home::device;
  const NearestSearch ample = nearest({1, needs(asked_).device / 2, 1 << 30});
  ASSERT_TRUE(ample.found);
  EXPECT_TRUE(ample.found->choices.moves_state());
  EXPECT_FALSE(ample.found->limits.host_bytes);
}

TEST_F(FindNearest, ABudgetThatNothingKeepsLeavesNothing) {
  frame_.budget_bytes[static_cast<std::size_t>(Tier::device)] = 1;
  const NearestSearch search = nearest({1, {}, 1 << 30});
  EXPECT_TRUE(search.complete);
  EXPECT_FALSE(search.found);
}

TEST_F(FindNearest, WithoutWorkNothingIsTried) {
  const NearestSearch search = nearest({1, {}, 1 << 30}, 0);
  EXPECT_FALSE(search.complete);
  EXPECT_FALSE(search.found);
}

/// Work is counted, not time, so that every limit gives one answer, on however busy a machine.
TEST_F(FindNearest, LittleWorkLeavesAChangeUnplanned) {
  Choices half = asked_;
  half.micro_batch = half.micro_steps = 2;
  const MachineMemory memory{1, needs(half).device, 0};
  Search search{model_, frame_, machine_, {frame_.mesh, {}}};
  search.plan = with_choices(frame_, half, model_.build);
  const std::int64_t planning = find_plan(search).work;
  search.plan.scheduled = false;
  const std::int64_t compiling = find_plan(search).work;
  EXPECT_GT(planning, 4 * compiling);
  const NearestSearch unplanned = nearest(memory, planning),
                      planned = nearest(memory, 3 * planning);
  ASSERT_TRUE(unplanned.found && planned.found);
  EXPECT_FALSE(unplanned.complete);
  EXPECT_TRUE(planned.complete);
  EXPECT_EQ(unplanned.found->nearness, Nearness::unplanned);
  EXPECT_EQ(planned.found->nearness, Nearness::cheapest);
  EXPECT_EQ(unplanned.found->choices, half);
  EXPECT_EQ(planned.found->choices, half);
  EXPECT_LE(unplanned.found->needs.device, planned.found->needs.device);
}

}  // namespace
}  // namespace strata::plan

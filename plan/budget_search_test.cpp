// Checks what searches say of choices that do not fit, and which come nearest to fitting.
#include "plan/budget_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

constexpr std::int64_t kMostWork = 2'000'000;

class Searches : public testing::Test {
 protected:
  Searches() {
    search_.plan.backend = machine_.device.capabilities.backend;
    asked_.micro_batch = 8;
    set_again_part(asked_, 1);
  }

  /// Nothing is open but the optimizer's home, which is no drive.
  [[nodiscard]] static Freedom only_optimizer() {
    Freedom free;
    free.micro_batch = free.stage = free.saved = free.order = free.sums = false;
    free.parameters = free.activations = false;
    free.farthest = Home::host;
    return free;
  }
  [[nodiscard]] BudgetSearch search(const Freedom& free) const {
    return {search_, asked_, free, kMostWork};
  }
  [[nodiscard]] MemoryNeeds needs(Home optimizer, double part) {
    Choices choices = asked_;
    choices.optimizer = optimizer;
    choices.optimizer_part = part;
    return StepEstimates(search_, asked_).bound(choices)->needs;
  }

  compile::TrainingModel model_ = small_training(4);
  machine::Machine machine_ = small_gpu();
  runtime::Plan frame_ = small_frame(1);
  Choices asked_;
  Search search_{model_, frame_, machine_, {frame_.mesh, {}}};
};

TEST_F(Searches, AttemptsNameTheMemoryThatTheyLack) {
  BudgetSearch tried = search({});
  const auto lacks = [&](const Choices& choices, const MemoryLimits& limits) {
    EXPECT_FALSE(tried.attempted_step(choices, limits));
    return tried.attempts().back().lacks;
  };
  Choices away = asked_, on_drive = asked_;
  away.optimizer = Home::host;
  on_drive.optimizer = Home::disk;
  EXPECT_EQ(lacks(asked_, {.device_bytes = 1000}), "device memory");
  EXPECT_EQ(lacks(away, {.host_bytes = 1000}), "host memory");
  EXPECT_EQ(lacks(on_drive, {.disk_bytes = 1000}), "room on drives");
}

TEST_F(Searches, OfACpuLackItsMemory) {
  machine_ = machine::cpu_machine(1);
  const Search on_cpu{model_, frame_, machine_, {frame_.mesh, {}}};
  BudgetSearch tried(on_cpu, asked_, {}, kMostWork);
  EXPECT_FALSE(tried.attempted_step(asked_, {.host_bytes = 1000}));
  EXPECT_EQ(tried.attempts().back().lacks, "host memory");
}

TEST_F(Searches, TheNearestHoldsAsMuchStateAsHostMemoryDoes) {
  const MemoryNeeds held = needs(Home::host, 14.0 / 16), less = needs(Home::host, 0.75);
  ASSERT_LT(held.device, less.device);
  // A quarter less is too much for the device, all of it for host memory.
  const MemoryLimits limits{.device_bytes = (held.device + less.device) / 2,
                            .host_bytes = held.host};
  const std::optional<PlannedStep> nearest = search(only_optimizer()).nearest(limits);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->choices.optimizer, Home::host);
  EXPECT_EQ(nearest->choices.optimizer_part, 14.0 / 16);
}

TEST_F(Searches, AllStateIsNearestWhereTheDeviceHasNoRoomForMore) {
  const MemoryNeeds all = needs(Home::host, 1);
  const MemoryLimits limits{.device_bytes = all.device,
                            .host_bytes = std::llround(0.97 * static_cast<double>(all.host))};
  const std::optional<PlannedStep> nearest = search(only_optimizer()).nearest(limits);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->choices.optimizer_part, 1);
}

}  // namespace
}  // namespace strata::plan

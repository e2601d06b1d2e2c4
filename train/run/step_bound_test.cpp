// Tests the bound of a step that moves state between tiers.
#include "train/run/step_bound.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

TEST(StepBound, IsNoLongerThanAStepThatWasFaster) {
  runtime::Usage usage{};
  usage[static_cast<std::size_t>(runtime::Queue::compute)].busy_seconds = 3;
  const StepBound beaten = find_bound(usage, 1, 2, {});
  EXPECT_DOUBLE_EQ(beaten.bound_seconds, 2);
  EXPECT_DOUBLE_EQ(beaten.reached, 1);
  const StepBound missed = find_bound(usage, 1, 4, {});
  EXPECT_DOUBLE_EQ(missed.bound_seconds, 3);
  EXPECT_DOUBLE_EQ(missed.reached, 0.75);
}

}  // namespace
}  // namespace strata::train

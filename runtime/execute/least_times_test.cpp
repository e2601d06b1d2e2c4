// Tests the least time in which the work of a step could be done.
#include "runtime/execute/least_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "kernels/ops/operation.h"

namespace strata::runtime {
namespace {

using std::chrono::milliseconds;

/// Two instructions of one kind and one of another, which may be skipped.
class LeastTimesOfSteps : public testing::Test {
 protected:
  LeastTimesOfSteps() {
    for (const std::uint64_t signature : {1, 1, 2}) {
      Instruction in;
      in.operation = kernels::all_operations().front();
      in.demand.signature = signature;
      program_.instructions.push_back(in);
    }
    program_.instructions.back().predicate = Operand{};
  }
  /// Negative: the instruction is skipped, and its thread held up for so long.
  void run(std::int64_t step, const std::vector<int>& ms) {
    times_.starting(program_, step);
    for (int i = 0; i < static_cast<int>(ms.size()); ++i) {
      const int of_it = ms[static_cast<std::size_t>(i)];
      times_.begin(program_, i);
      if (of_it < 0) times_.skipped(program_, i);
      std::this_thread::sleep_for(milliseconds(std::abs(of_it)));
      times_.end(program_, i);
    }
  }
  double least_ms(std::int64_t step) {
    return 1e3 * times_.take(step)[static_cast<std::size_t>(Queue::compute)];
  }
  Program program_;
  LeastTimes times_;
};

/// A sleep may be longer than asked for, never shorter.
TEST_F(LeastTimesOfSteps, AnInstructionCountsWithTheLeastTimeOfItsKindInAnyStep) {
  run(0, {800, 10, 10});
  const double first = least_ms(0);
  EXPECT_GE(first, 30);
  EXPECT_LT(first, 800) << "the long run counts as the short one of its kind";
  run(1, {300, 300, 300});
  EXPECT_DOUBLE_EQ(least_ms(1), first);
}

TEST_F(LeastTimesOfSteps, WhatTheNextStepHasBegunIsNoWorkOfThisOne) {
  run(0, {1, 1, 1});
  run(1, {10, 10, 10});
  run(1, {10, 10, 10});
  const double one = least_ms(0);
  EXPECT_NEAR(least_ms(1), 2 * one, 1e-9);
  EXPECT_EQ(least_ms(2), 0) << "nothing was started";
}

TEST_F(LeastTimesOfSteps, ASumHasAllItsStepsByTheLastTimes) {
  run(0, {1, 1, 1});
  least_ms(0);
  times_.begin_sum();
  run(1, {20, 20, 20});
  run(1, {20, 20, 20});
  least_ms(1);
  run(2, {1, 1, 1});
  const double one = least_ms(2);
  run(3, {20, 20, 20});
  times_.forget(3);
  EXPECT_NEAR(1e3 * times_.sum()[static_cast<std::size_t>(Queue::compute)], 3 * one, 1e-9);
}

TEST_F(LeastTimesOfSteps, AnInstructionThatWasSkippedSaysNothingOfItsKind) {
  run(0, {10, 10, 10});
  const double all = least_ms(0);
  run(1, {20, 20, -1});
  EXPECT_DOUBLE_EQ(least_ms(1), all);
}

}  // namespace
}  // namespace strata::runtime

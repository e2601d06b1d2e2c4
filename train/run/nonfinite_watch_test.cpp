#include "train/run/nonfinite_watch.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace strata::train {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

StepDone finite(std::int64_t step) {
  StepDone report;
  report.step = step;
  report.metrics.loss = 2;
  report.metrics.gradient_norm = 1;
  return report;
}

StepDone bad_gradient(std::int64_t step, double scale = 1) {
  StepDone report = finite(step);
  report.metrics.gradient_norm = kNaN;
  report.metrics.loss_scale = scale;
  return report;
}

StepDone bad_loss(std::int64_t step) {
  StepDone report = bad_gradient(step);
  report.metrics.loss = kNaN;
  return report;
}

TrainOptions options(DType dtype, NonFinite on_nonfinite = NonFinite::automatic) {
  TrainOptions options;
  options.dtype = dtype;
  options.on_nonfinite = on_nonfinite;
  options.nonfinite_steps = 3;
  return options;
}

TEST(NonFiniteWatch, LimitsAreThoseOfTheTypeUnlessTheyAreNamed) {
  EXPECT_EQ(nonfinite_limit(options(DType::f32)), 1);
  EXPECT_EQ(nonfinite_limit(options(DType::bf16)), 3);
  EXPECT_EQ(nonfinite_limit(options(DType::f16)), 3);
  EXPECT_EQ(nonfinite_limit(options(DType::f32, NonFinite::skip)), 3);
  EXPECT_EQ(nonfinite_limit(options(DType::bf16, NonFinite::stop)), 1);
  TrainOptions unchecked = options(DType::bf16);
  unchecked.bf16_check_overflow = false;
  EXPECT_EQ(nonfinite_limit(unchecked), 1);
  EXPECT_EQ(TrainOptions{}.nonfinite_steps, 20);
}

TEST(NonFiniteWatch, OneStepEndsARunInFp32) {
  NonFiniteWatch watch(options(DType::f32));
  EXPECT_EQ(watch.take(finite(1)), "");
  EXPECT_EQ(watch.take(bad_loss(2)),
            "step 2: the loss is not finite (or over 8,192): the run ends");
  EXPECT_EQ(
      watch.end().find("step 2: the loss is not finite (or over 8,192); lower the learning rate"),
      0U)
      << watch.end();
  EXPECT_EQ(watch.take(bad_loss(3)), "");  // it was already under way
  EXPECT_EQ(watch.end().find("step 2: "), 0U);
}

// Fault 20.
TEST(NonFiniteWatch, ARowIsSaidAtItsBeginningAndItsEnd) {
  NonFiniteWatch watch(options(DType::bf16));
  EXPECT_EQ(watch.take(bad_gradient(1)),
            "step 1: the loss is finite, but a gradient is not: parameters and optimizer state "
            "stay as they were");
  EXPECT_EQ(watch.take(bad_loss(2)), "");
  EXPECT_EQ(watch.take(finite(3)), "step 3: finite again, after 2 steps without an update");
  EXPECT_EQ(watch.take(finite(4)), "");
  for (const int step : {5, 6}) (void)watch.take(bad_loss(step));
  EXPECT_EQ(watch.end(), "") << "rows are counted apart";
  EXPECT_EQ(watch.take(bad_loss(7)),
            "step 7: the loss is not finite (or over 8,192): the run ends");
  EXPECT_EQ(watch.end().find(
                "step 7: the loss is not finite (or over 8,192), nor was it in the 2 steps before"),
            0U)
      << watch.end();
}

TEST(NonFiniteWatch, OverflowsThatFindALossScaleDoNotCount) {
  NonFiniteWatch watch(options(DType::f16));
  EXPECT_NE(watch.take(bad_gradient(1, 65536)).find("is not, at loss scale 65536: "),
            std::string::npos);
  for (int step = 2; step < 30; ++step) (void)watch.take(bad_gradient(step, 2));
  EXPECT_EQ(watch.end(), "");
  StepDone floor = bad_gradient(30, 1);
  floor.metrics.at_floor = 1;
  (void)watch.take(floor);
  EXPECT_NE(watch.end().find("at loss scale 1, the smallest"), std::string::npos) << watch.end();

  NonFiniteWatch losses(options(DType::f16));
  for (const int step : {1, 2, 3}) (void)losses.take(bad_loss(step));
  EXPECT_EQ(losses.end().find("step 3: the loss is not finite (or over 8,192)"), 0U)
      << losses.end();
}

TEST(NonFiniteWatch, UpdatesThatDoNotWaitLeaveNothingToGoOnFrom) {
  TrainOptions eager = options(DType::f32, NonFinite::skip);
  eager.offload.updates = UpdateTime::gradient;
  NonFiniteWatch watch(eager);
  (void)watch.take(bad_gradient(1));
  EXPECT_NE(watch.end().find("have already changed parameters"), std::string::npos);
}

}  // namespace
}  // namespace strata::train

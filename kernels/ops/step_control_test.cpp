#include "kernels/ops/step_control.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>

#include "kernels/ops/advance_step.h"
#include "kernels/ops/wide_sum.h"

namespace strata::kernels {
namespace {

using Word = std::array<std::int64_t, AgreedWord::kWords>;

/// Runs steps on plain structs.
struct Stepper {
  StepRules rules;
  StepState state;
  StepControl control;
  StepMetrics metrics;

  void step(const Word& word) { advance_step(rules, word, state, control, metrics); }
  /// Runs a step whose gradient, without the loss scale in force, has `norm`.
  void step(double norm, bool overflow) {
    Word word{};
    const double scaled = norm * state.loss_scale;
    ASSERT_TRUE(wide_add(WideDigits(word.data(), AgreedWord::kDigits), scaled * scaled));
    word[AgreedWord::kNonFinite] = overflow ? 3 : 0;
    step(word);
  }
};

Stepper dynamic_scaler(StepRules rules, double initial_scale) {
  rules.scale_mode = ScaleMode::dynamic;
  Stepper stepper{.rules = rules};
  stepper.state.loss_scale = initial_scale;
  stepper.state.hysteresis = rules.hysteresis;
  return stepper;
}

/// DeepSpeed's loss scaler, written from its description, to compare with.
struct Simulation {
  double s;
  std::int64_t H, h, window, i = 0, j = -1;
  bool consecutive, floor_hit = false;
  double minimum;

  void observe(bool overflow) {
    if (overflow) {
      if (H == 1 || h == 1) {
        if (s == minimum) floor_hit = true;
        s = s / 2 > minimum ? s / 2 : minimum;
      } else {
        h -= 1;
      }
      j = i;
    } else {
      if (consecutive) h = H;
      const std::int64_t k = (i - j) - 1;
      if (k > 0 && k % window == 0) {
        if (!consecutive) h = H;
        s *= 2;
      }
    }
    i += 1;
  }
};

TEST(StepControl, LossScaleFollowsDeepSpeedThroughRandomOverflows) {
  std::mt19937 generator(1);
  for (const std::int64_t hysteresis : {1, 2, 3})
    for (const std::int64_t window : {1, 2, 5})
      for (const bool consecutive : {false, true}) {
        SCOPED_TRACE(std::to_string(hysteresis) + " " + std::to_string(window));
        Stepper stepper = dynamic_scaler({.loss_scale_window = window,
                                          .hysteresis = hysteresis,
                                          .consecutive_hysteresis = consecutive,
                                          .min_loss_scale = 4},
                                         256);
        Simulation simulation{.s = 256,
                              .H = hysteresis,
                              .h = hysteresis,
                              .window = window,
                              .consecutive = consecutive,
                              .minimum = 4};
        std::int64_t skipped = 0;
        for (int step = 0; step < 500; ++step) {
          const bool overflow = generator() % 3 == 0;
          const double used = simulation.s;
          simulation.observe(overflow);
          skipped += overflow ? 1 : 0;
          stepper.step(1, overflow);
          ASSERT_EQ(stepper.control.apply, overflow ? 0U : 1U);
          ASSERT_EQ(stepper.metrics.loss_scale, used) << step;
          ASSERT_EQ(stepper.state.loss_scale, simulation.s) << step;
          ASSERT_EQ(stepper.state.hysteresis, simulation.h) << step;
          ASSERT_EQ(stepper.state.at_floor, simulation.floor_hit ? 1 : 0) << step;
          ASSERT_EQ(stepper.metrics.at_floor, stepper.state.at_floor);
          ASSERT_EQ(stepper.state.skipped, skipped);
          ASSERT_EQ(stepper.state.updates, step + 1 - skipped);
        }
      }
}

TEST(StepControl, ScaleGrowsAfterWindowPlusOneCleanStepsAndUnscalesWithTheOldOne) {
  Stepper stepper = dynamic_scaler({.loss_scale_window = 3}, 1024);
  for (int clean = 0; clean < 3; ++clean) {
    stepper.step(1, false);
    EXPECT_EQ(stepper.state.loss_scale, 1024);
  }
  stepper.step(1, false);
  EXPECT_EQ(stepper.state.loss_scale, 2048);  // for the next step
  EXPECT_EQ(stepper.control.gradient_factor, 1.0F / 1024);
  EXPECT_EQ(stepper.metrics.gradient_norm, 1);
  stepper.step(1, false);
  EXPECT_EQ(stepper.control.gradient_factor, 1.0F / 2048);
}

TEST(StepControl, HysteresisToleratesOverflowsBeforeHalving) {
  Stepper stepper = dynamic_scaler({.hysteresis = 3}, 64);
  stepper.step(1, true);
  stepper.step(1, true);
  EXPECT_EQ(stepper.state.loss_scale, 64);
  stepper.step(1, true);
  EXPECT_EQ(stepper.state.loss_scale, 32);
}

TEST(StepControl, OverflowAtTheSmallestScaleMustStopTheRun) {
  Stepper stepper = dynamic_scaler({.hysteresis = 1, .min_loss_scale = 1}, 2);
  stepper.step(1, true);
  EXPECT_EQ(stepper.state.loss_scale, 1);
  EXPECT_EQ(stepper.metrics.at_floor, 0);
  stepper.step(1, true);
  EXPECT_EQ(stepper.state.loss_scale, 1);
  EXPECT_EQ(stepper.metrics.at_floor, 1);
}

TEST(StepControl, SkippedStepChangesNothingButCounters) {
  Stepper stepper{
      .rules = {
          .skip_nonfinite = true,
          .schedule = {
              .kind = ScheduleKind::linear, .base = 1, .warmup_steps = 10, .total_steps = 20}}};
  stepper.step(1, false);
  const StepState before = stepper.state;
  stepper.step(1, true);
  EXPECT_EQ(stepper.control.apply, 0U);
  EXPECT_EQ(stepper.metrics.overflow, 1);
  EXPECT_EQ(stepper.metrics.skipped, 1);
  EXPECT_EQ(stepper.state.updates, before.updates);
  EXPECT_EQ(stepper.state.beta1_power, before.beta1_power);
  EXPECT_EQ(stepper.state.loss_scale, before.loss_scale);
  EXPECT_TRUE(std::isnan(stepper.metrics.gradient_norm));
  stepper.step(1, false);
  EXPECT_EQ(stepper.control.apply, 1U);
  EXPECT_DOUBLE_EQ(stepper.metrics.learning_rate, 0.1);  // the second applied step
  EXPECT_EQ(stepper.control.first_update, 0U);
}

TEST(StepControl, PlainFp32AppliesWhatIsNotFiniteAsPyTorchDoes) {
  Stepper stepper{.rules = {}};
  stepper.step(1, true);
  EXPECT_EQ(stepper.control.apply, 1U);
  EXPECT_EQ(stepper.metrics.overflow, 0);
  EXPECT_EQ(stepper.control.gradient_factor, 1);
  stepper.rules.clip = 1;
  stepper.step(1, true);
  EXPECT_TRUE(std::isnan(stepper.control.gradient_factor));
}

TEST(StepControl, ConstantScaleStaysAndUnscales) {
  Stepper stepper{
      .rules = {.scale_mode = ScaleMode::constant, .hysteresis = 1, .skip_nonfinite = true}};
  stepper.state.loss_scale = 128;
  stepper.step(3, true);
  stepper.step(3, false);
  EXPECT_EQ(stepper.state.loss_scale, 128);
  EXPECT_EQ(stepper.metrics.gradient_norm, 3);
  EXPECT_EQ(stepper.control.gradient_factor, 1.0F / 128);
}

TEST(StepControl, ClipsToTheGlobalNormAsDeepSpeed) {
  Stepper stepper{.rules = {.clip = 0.5}};
  stepper.step(2, false);
  EXPECT_EQ(stepper.control.gradient_factor, static_cast<float>(1 / ((2 + 1e-6) / 0.5)));
  stepper.step(0.25, false);
  EXPECT_EQ(stepper.control.gradient_factor, 1);
  Stepper scaled{.rules = {.clip = 0.5, .scale_mode = ScaleMode::constant}};
  scaled.state.loss_scale = 16;
  scaled.step(2, false);
  EXPECT_EQ(scaled.control.gradient_factor, static_cast<float>(1 / (((2 + 1e-6) / 0.5) * 16)));
}

TEST(StepControl, BiasCorrectionCountsAppliedSteps) {
  Stepper stepper{.rules = {.beta1 = 0.9, .beta2 = 0.95}};
  for (int t = 1; t <= 50; ++t) {
    stepper.step(1, false);
    EXPECT_EQ(stepper.control.first_update, t == 1 ? 1U : 0U);
    EXPECT_FLOAT_EQ(stepper.control.bias_correction1, static_cast<float>(1 - std::pow(0.9, t)));
    EXPECT_FLOAT_EQ(stepper.control.bias_correction2_sqrt,
                    static_cast<float>(std::sqrt(1 - std::pow(0.95, t))));
  }
  stepper.rules.bias_correction = false;
  stepper.step(1, false);
  EXPECT_EQ(stepper.control.bias_correction1, 1);
  EXPECT_EQ(stepper.control.bias_correction2_sqrt, 1);
}

TEST(StepControl, ReportsLossNormFlagsOverAllRanks) {
  Stepper stepper{.rules = {.leaves = 4}};
  Word word{};
  word[AgreedWord::kLoss] = std::int64_t{10} << 40;  // four ranks' means add up to 10
  word[AgreedWord::kFirstFlag + 1] = 4;
  word[AgreedWord::kFirstFlag + 7] = 1;
  stepper.step(word);
  EXPECT_EQ(stepper.metrics.loss, 2.5);
  EXPECT_EQ(stepper.metrics.flags, 0b10000010);
  EXPECT_EQ(stepper.metrics.gradient_norm, 0);
  word[AgreedWord::kNonFiniteLoss] = word[AgreedWord::kNonFinite] = 1;
  stepper.step(word);
  EXPECT_TRUE(std::isnan(stepper.metrics.loss));
}

TEST(StepControl, RulesSurviveTheAttributes) {
  const StepRules rules{.leaves = 3,
                        .clip = 1.5,
                        .scale_mode = ScaleMode::constant,
                        .loss_scale_window = 7,
                        .hysteresis = 4,
                        .consecutive_hysteresis = true,
                        .min_loss_scale = 2,
                        .skip_nonfinite = true,
                        .beta1 = 0.1,
                        .beta2 = 0.2,
                        .bias_correction = false,
                        .schedule = {.kind = ScheduleKind::warmup, .maximum = 5}};
  EXPECT_EQ(StepRules::from(rules.to_attributes()), rules);
  EXPECT_EQ(StepRules::from({}), StepRules{});
}

}  // namespace
}  // namespace strata::kernels

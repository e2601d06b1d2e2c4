// Tests the operations on the few numbers that steer a step: gradient_scale, add_loss,
// step_control, early_control.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/ops/add_loss.h"
#include "kernels/ops/early_control.h"
#include "kernels/ops/gradient_scale.h"
#include "kernels/ops/step_control.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

std::vector<float> scale_of(double loss_scale, std::int64_t targets, std::int64_t leaves) {
  StepState state;
  state.loss_scale = loss_scale;
  std::vector<TestTensor> inputs = {TestTensor::from_struct(state)};
  inputs.emplace_back(DType::i64, Shape{1}, std::vector<std::int64_t>{targets});
  std::vector<TestTensor> fresh;
  run_kernel(any_runner(), gradient_scale_operation(), inputs,
             {{"leaves", static_cast<double>(leaves)}}, fresh);
  return fresh.at(0).values<float>();
}

TEST(GradientScale, DividesByTheTargetsOfALeafOnAverage) {
  EXPECT_EQ(scale_of(1024, 1200, 1), (std::vector<float>{1024.0F / 1200, 1.0F / 1200}));
  EXPECT_EQ(scale_of(1024, 1200, 3), (std::vector<float>{1024.0F / 400, 1.0F / 400}));
  EXPECT_EQ(scale_of(1, 1, 4), (std::vector<float>{4, 4}));
  EXPECT_EQ(scale_of(1, 7, 3), (std::vector<float>(2, static_cast<float>(1 / (7.0 / 3)))));
  EXPECT_EQ(scale_of(1, 0, 4), (std::vector<float>{0, 0}));
}

std::vector<std::int64_t> add_loss(std::vector<std::int64_t> word, double loss,
                                   std::int64_t leaves = 1) {
  std::vector<TestTensor> inputs;
  inputs.emplace_back(DType::i64, Shape{AgreedWord::kWords}, word);
  inputs.emplace_back(DType::f64, Shape{1}, std::vector<double>{loss});
  std::vector<TestTensor> fresh;
  run_kernel(any_runner(), add_loss_operation(), inputs, {{"leaves", static_cast<double>(leaves)}},
             fresh);
  return inputs[0].values<std::int64_t>();
}

TEST(AddLoss, CountsInUnitsOfTwoToTheMinusForty) {
  std::vector<std::int64_t> word(AgreedWord::kWords, 1);
  word[AgreedWord::kLoss] = 0;
  const auto added = add_loss(add_loss(word, 2.5), -0.25);
  EXPECT_EQ(added[AgreedWord::kLoss], std::int64_t{9} << 38);
  word[AgreedWord::kLoss] = added[AgreedWord::kLoss];
  EXPECT_EQ(added, word);
}

TEST(AddLoss, CountsALossBeyondItsLimitAsNotFinite) {
  const std::vector<std::int64_t> word(AgreedWord::kWords);
  EXPECT_EQ(add_loss(word, 8191.75)[AgreedWord::kLoss], std::int64_t{32767} << 38);
  for (const double loss : {8192.0, -8192.0, -1e5, 1e300}) {
    std::vector<std::int64_t> expected = word;
    expected[AgreedWord::kNonFinite] = expected[AgreedWord::kNonFiniteLoss] = 1;
    EXPECT_EQ(add_loss(word, loss), expected) << loss;
  }
  const auto part = add_loss(word, 8000);  // of a mean over micro-steps
  EXPECT_EQ(add_loss(part, 8000)[AgreedWord::kLoss], part[AgreedWord::kLoss]);
  EXPECT_EQ(add_loss(part, 8000)[AgreedWord::kNonFinite], 1);
}

TEST(AddLoss, HasRoomForEveryLeafOfARank) {
  const std::vector<std::int64_t> word(AgreedWord::kWords);
  const auto limit = (std::int64_t{1} << 53) - 1;
  const auto twice = add_loss(add_loss(word, 8000, 2), 8000, 2);
  EXPECT_EQ(twice[AgreedWord::kLoss], std::int64_t{16000} << 40);
  EXPECT_EQ(add_loss(twice, 8000, 2)[AgreedWord::kNonFiniteLoss], 1);
  std::vector<std::int64_t> full(AgreedWord::kWords);
  full[AgreedWord::kLoss] = kMaxLossLeaves * limit;
  EXPECT_EQ(add_loss(full, 8191, kMaxLossLeaves)[AgreedWord::kLoss], full[AgreedWord::kLoss]);
}

TEST(AddLoss, CountsWhatIsNotFinite) {
  std::vector<std::int64_t> word(AgreedWord::kWords);
  word = add_loss(word, std::numeric_limits<double>::quiet_NaN());
  word = add_loss(word, std::numeric_limits<double>::infinity());
  EXPECT_EQ(word[AgreedWord::kNonFinite], 2);
  EXPECT_EQ(word[AgreedWord::kNonFiniteLoss], 2);
  EXPECT_EQ(word[AgreedWord::kLoss], 0);
}

TEST(StepControlKernel, UpdatesStateInPlaceAndWritesControlAndMetrics) {
  const StepRules rules{.leaves = 2, .clip = 1, .schedule = {.base = 0.5}};
  StepState state;
  std::vector<std::int64_t> word(AgreedWord::kWords);
  word[AgreedWord::kLoss] = std::int64_t{3} << 40;
  std::vector<TestTensor> inputs = {TestTensor::from_struct(state)};
  inputs.emplace_back(DType::i64, Shape{AgreedWord::kWords}, word);
  std::vector<TestTensor> fresh;
  run_kernel(any_runner(), step_control_operation(), inputs, rules.to_attributes(), fresh);
  EXPECT_EQ(inputs[0].as_struct<StepState>().updates, 1);
  EXPECT_EQ(fresh.at(0).as_struct<StepControl>().apply, 1U);
  EXPECT_EQ(fresh.at(0).as_struct<StepControl>().learning_rate, 0.5F);
  EXPECT_EQ(fresh.at(1).as_struct<StepMetrics>().loss, 1.5);
}

TEST(EarlyControlKernel, SaysWhatStepControlWillSayOfTheSameState) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::warmup_cosine}) {
    const StepRules rules{.schedule = {.kind = kind, .base = 0.5, .warmup_steps = 3}};
    StepState state;
    for (int step = 0; step < 6; ++step) {
      std::vector<TestTensor> before = {TestTensor::from_struct(state)}, early, late;
      run_kernel(any_runner(), early_control_operation(), before, rules.to_attributes(), early);
      EXPECT_EQ(before[0].as_struct<StepState>().updates, step) << "the state does not advance";
      std::vector<std::int64_t> word(AgreedWord::kWords);
      word[0] = 1000 + step;
      word[AgreedWord::kNonFinite] = step == 4 ? 1 : 0;  // applied all the same
      before.emplace_back(DType::i64, Shape{AgreedWord::kWords}, word);
      run_kernel(any_runner(), step_control_operation(), before, rules.to_attributes(), late);
      EXPECT_EQ(early.at(0).bytes(), late.at(0).bytes()) << step;
      EXPECT_EQ(early.at(0).as_struct<StepControl>().apply, 1U);
      state = before[0].as_struct<StepState>();
    }
  }
}

TEST(EarlyControlKernel, RefusesRulesThatNeedTheGradient) {
  const Types state = {{DType::u8, {static_cast<std::int64_t>(sizeof(StepState))}}};
  const auto infer = [&](const StepRules& rules) {
    return early_control_operation().infer(state, rules.to_attributes());
  };
  EXPECT_EQ(infer({}).size(), 1U);
  EXPECT_THROW(infer({.clip = 1}), InvalidArgument);
  EXPECT_THROW(infer({.scale_mode = ScaleMode::constant}), InvalidArgument);
  EXPECT_THROW(infer({.skip_nonfinite = true}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

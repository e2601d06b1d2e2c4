#include "kernels/ops/lion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/math/philox.h"
#include "kernels/math/stochastic_rounding.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/kernel_test_support.h"
#include "kernels/testing/packed_test_support.h"

namespace strata::kernels {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.99;

Attributes settings(double weight_decay, std::int64_t first = 0) {
  return {{"beta1", kBeta1},
          {"beta2", kBeta2},
          {"weight_decay", weight_decay},
          {"key", 5},
          {"first", static_cast<double>(first)}};
}

StepControl control_of(float learning_rate, float factor) {
  StepControl control;
  control.apply = 1;
  control.learning_rate = learning_rate;
  control.gradient_factor = factor;
  return control;
}

/// Computes the sequence of operations of kernels/ops/lion.h.
void reference(float& p, float& m, float gradient, const StepControl& control,
               double weight_decay) {
  const float g = gradient * control.gradient_factor;
  const float c = static_cast<float>(kBeta1) * m + static_cast<float>(1 - kBeta1) * g;
  const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : c;
  float update = control.learning_rate * sign;
  if (weight_decay != 0)
    update = update + static_cast<float>(control.learning_rate * weight_decay) * p;
  p = p - update;
  m = static_cast<float>(kBeta2) * m + static_cast<float>(1 - kBeta2) * g;
}

std::vector<TestTensor> operands(std::vector<TestTensor> state, const TestTensor& gradient,
                                 const StepControl& control, bool stochastic) {
  state.push_back(gradient);
  state.push_back(TestTensor::from_struct(control));
  if (stochastic) state.emplace_back(DType::i64, Shape{2}, std::vector<std::int64_t>{17, 3});
  return state;
}

// Algorithm 2 of the paper in double: theta -= eta (sign(beta1 m + (1 - beta1) g) + lambda theta).
TEST(Lion, FollowsThePaperForAHundredSteps) {
  const std::int64_t count = 37;
  const Runner runner = any_runner();
  const std::vector<float> start = random_floats(count, 1);
  std::vector<double> theta(start.begin(), start.end()), m(theta.size());
  std::vector<TestTensor> state{TestTensor(DType::f32, {count}, start),
                                TestTensor(TensorType(DType::f32, {count}))};
  const double eta = 0.01F, lambda = 0.5;
  for (std::uint32_t t = 1; t <= 100; ++t) {
    const std::vector<float> gradient = random_floats(count, t + 10, 8);
    std::vector<TestTensor> fresh;
    state.resize(2, state[0]);
    state =
        operands(state, TestTensor(DType::f32, {count}, gradient), control_of(0.01F, 0.25F), false);
    run_kernel(runner, lion_operation(), state, settings(lambda), fresh);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      const double g = 0.25 * static_cast<double>(gradient[i]);
      const double c = kBeta1 * m[i] + (1 - kBeta1) * g;
      theta[i] -= eta * ((c > 0 ? 1 : c < 0 ? -1 : 0) + lambda * theta[i]);
      m[i] = kBeta2 * m[i] + (1 - kBeta2) * g;
    }
  }
  const std::vector<float> parameters = state[0].values<float>();
  double moved = 0;
  for (std::size_t i = 0; i < theta.size(); ++i) {
    EXPECT_NEAR(parameters[i], theta[i], 1e-5) << i;
    moved += std::fabs(theta[i] - static_cast<double>(start[i]));
  }
  EXPECT_GT(moved, 5);
}

TEST(Lion, MovesByTheLearningRateAndNotWithoutAGradient) {
  std::vector<TestTensor> fresh,
      inputs = operands({TestTensor(DType::f32, {4}, std::vector<float>{1, 1, 1, 1}),
                         TestTensor(TensorType(DType::f32, {4}))},
                        TestTensor(DType::f32, {4}, std::vector<float>{1e-30F, -50, 0, -0.0F}),
                        control_of(0.125F, 1), false);
  run_kernel(any_runner(), lion_operation(), inputs, settings(0), fresh);
  EXPECT_EQ(inputs[0].values<float>(), (std::vector<float>{0.875F, 1.125F, 1, 1}));
}

TEST(Lion, GivesTheBitsOfTheWrittenSequenceHoweverItRuns) {
  const std::int64_t count = 150'001;  // more than one task
  const std::vector<float> start = random_floats(count, 3);
  const std::vector<float> gradient = random_floats(count, 4, 1e-2F);
  for (const double decay : {0.0, 0.1}) {
    std::vector<float> p = start, m(start.size());
    for (int t = 1; t <= 3; ++t)
      for (std::size_t i = 0; i < p.size(); ++i)
        reference(p[i], m[i], gradient[i], control_of(1e-3F, 0.3F), decay);
    for (const auto& [name, runner] : all_runners()) {
      std::vector<TestTensor> fresh,
          inputs = operands(
              {TestTensor(DType::f32, {count}, start), TestTensor(TensorType(DType::f32, {count}))},
              TestTensor(DType::f32, {count}, gradient), control_of(1e-3F, 0.3F), false);
      for (int t = 1; t <= 3; ++t)
        run_kernel(runner, lion_operation(), inputs, settings(decay), fresh);
      ASSERT_TRUE(inputs[0].values<float>() == p) << name;
      ASSERT_TRUE(inputs[1].values<float>() == m) << name;
    }
  }
}

TEST(Lion, KeepsItsStateInOtherFormats) {
  const std::int64_t count = 2'501, first = 4094;
  const std::vector<float> start = masters_of_every_kind(count);
  std::vector<float> gradient = random_floats(count, 4, 1e-2F);
  for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16})
    for (const DType moment : {DType::f32, DType::bf16}) {
      const bool stochastic = moment == DType::bf16;
      const TestTensor stored = rounded_tensor(gradient_dtype, gradient);
      std::vector<float> m = random_floats(count, 5, 1e-2F), p = start;
      const TestTensor momentum = rounded_tensor(moment, m);
      const RandomSource source(17, 3, kStochasticSample, 5);
      std::vector<std::uint16_t> m16;
      for (std::size_t i = 0; i < p.size(); ++i) {
        reference(p[i], m[i], gradient[i], control_of(1e-3F, 0.5F), 0.1);
        m16.push_back(f32_to_bf16_stochastic(m[i], source.word(first + i) & 0xFFFF));
      }
      const TestTensor expected(DType::f32, {count}, p);
      Attributes attributes = settings(0.1, first);
      attributes.set("parameter_dtype", static_cast<double>(DType::bf16));
      for (const auto& [name, runner] : all_runners()) {
        std::vector<TestTensor> fresh, none, packed = packed_tensors(start);
        packed.push_back(momentum);
        packed = operands(packed, stored, control_of(1e-3F, 0.5F), stochastic);
        std::vector<TestTensor> plain = operands({TestTensor(DType::f32, {count}, start), momentum},
                                                 stored, control_of(1e-3F, 0.5F), stochastic);
        run_kernel(runner, lion_operation(), plain, attributes, fresh);
        run_kernel(runner, lion_packed_operation(), packed, settings(0.1, first), none);
        const auto masters = with_one_nan(expected.values<std::uint32_t>());
        ASSERT_EQ(with_one_nan(plain[0].values<std::uint32_t>()), masters) << name;
        ASSERT_EQ(unpacked(packed), masters) << name;
        ASSERT_EQ(with_one_nan(fresh.at(0).values<std::uint16_t>()),
                  with_one_nan(packed[0].values<std::uint16_t>()))
            << name;
        ASSERT_TRUE(packed[2].bytes() == plain[1].bytes()) << name;
        if (stochastic)
          ASSERT_EQ(plain[1].values<std::uint16_t>(), m16) << name;
        else
          ASSERT_EQ(plain[1].values<float>(), m) << name;
      }
    }
}

TEST(Lion, ShowsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [name, runner] : all_runners()) {
    std::vector<float> gradient(64, 0.1F);
    gradient[3] = nan;
    gradient[9] = infinity;
    std::vector<TestTensor> fresh,
        inputs = operands({TestTensor(DType::f32, {64}, std::vector<float>(64, 1)),
                           TestTensor(TensorType(DType::f32, {64}))},
                          TestTensor(DType::f32, {64}, gradient), control_of(0.125F, 1), false);
    run_kernel(runner, lion_operation(), inputs, settings(0), fresh);
    const std::vector<float> p = inputs[0].values<float>(), m = inputs[1].values<float>();
    EXPECT_TRUE(std::isnan(p[3]) && std::isnan(m[3])) << name;
    EXPECT_EQ(p[9], 0.875F) << name;
    EXPECT_EQ(m[9], infinity) << name;
  }
}

TEST(Lion, RefusesOtherTypes) {
  const TensorType full(DType::f32, {8}), half(DType::bf16, {8}), rest(DType::i16, {8}),
      rng(DType::i64, {2}), control(DType::u8, {sizeof(StepControl)});
  EXPECT_EQ(lion_operation().infer(Types{full, full, half, control}, settings(0)),
            (Types{full, full}));
  EXPECT_EQ(lion_packed_operation().infer(Types{half, rest, half, half, control, rng}, settings(0)),
            (Types{half, rest, half}));
  EXPECT_THROW(lion_operation().infer(Types{full, half, half, control}, settings(0)),
               InvalidArgument);
  EXPECT_THROW(lion_operation().infer(Types{full, full, full, half, control}, settings(0)),
               InvalidArgument);
  EXPECT_THROW(
      lion_operation().infer(Types{full, TensorType(DType::f32, {9}), half, control}, settings(0)),
      InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

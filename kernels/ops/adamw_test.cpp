#include "kernels/ops/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/adam_test_support.h"
#include "kernels/testing/adamw_reference.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

Attributes settings(double weight_decay, bool decoupled) {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"eps", 1e-8},
          {"weight_decay", weight_decay},
          {"decoupled", decoupled ? 1.0 : 0.0}};
}

/// Parameters with their moments as operands of adamw.
struct Optimizer {
  std::vector<TestTensor> operands;
  std::vector<TestTensor> fresh;

  explicit Optimizer(const std::vector<float>& parameters) {
    const Shape shape{static_cast<std::int64_t>(parameters.size())};
    operands.emplace_back(DType::f32, shape, parameters);
    for (int i = 0; i < 3; ++i) operands.emplace_back(TensorType(DType::f32, shape));
    operands.push_back(TestTensor::from_struct(StepControl{}));
  }
  void step(const Runner& runner, const std::vector<float>& gradient, const StepControl& control,
            const Attributes& attributes, bool in_place = true) {
    std::memcpy(operands[3].bytes().data(), gradient.data(), gradient.size() * sizeof(float));
    operands[4] = TestTensor::from_struct(control);
    fresh.clear();
    run_kernel(runner, adamw_operation(), operands, attributes, fresh, in_place);
  }
  [[nodiscard]] std::vector<float> parameters() const { return operands[0].values<float>(); }
};

/// torch.optim.AdamW / Adam in double by the plain formula.
struct Exact {
  double p, m = 0, v = 0;
  void step(int t, double g, double rate, double weight_decay, bool decoupled) {
    if (decoupled)
      p -= rate * weight_decay * p;
    else
      g += weight_decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, t));
    const double v_hat = v / (1 - std::pow(0.999, t));
    p -= rate * m_hat / (std::sqrt(v_hat) + 1e-8);
  }
};

TEST(Adamw, FollowsThePlainFormulaForAHundredSteps) {
  const Runner runner = any_runner();
  for (const bool decoupled : {true, false}) {
    const std::vector<float> start = random_floats(37, 1);
    Optimizer optimizer(start);
    std::vector<Exact> exact;
    for (float p : start) exact.push_back({.p = p});
    for (int t = 1; t <= 100; ++t) {
      const std::vector<float> gradient = random_floats(37, static_cast<std::uint32_t>(t) + 10, 8);
      optimizer.step(runner, gradient, control_at(t, 0.01F, 0.25F), settings(0.1, decoupled));
      for (std::size_t i = 0; i < exact.size(); ++i)
        exact[i].step(t, 0.25 * static_cast<double>(gradient[i]), 0.01F, 0.1, decoupled);
    }
    const std::vector<float> parameters = optimizer.parameters();
    float moved = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(parameters[i], exact[i].p, 1e-6) << i << (decoupled ? " AdamW" : " Adam");
      moved += std::fabs(parameters[i] - start[i]);
    }
    EXPECT_GT(moved, 1);
  }
}

TEST(Adamw, FirstStepMovesByTheLearningRateAgainstTheSign) {
  const Runner runner = any_runner();
  Optimizer optimizer({1, 1, 1});
  optimizer.step(runner, {1e-3F, -50, 0}, control_at(1, 0.125F, 1), settings(0, true));
  const std::vector<float> parameters = optimizer.parameters();
  EXPECT_NEAR(parameters[0], 0.875, 2e-6);
  EXPECT_NEAR(parameters[1], 1.125, 2e-6);
  EXPECT_EQ(parameters[2], 1);
}

TEST(Adamw, GivesTheBitsOfTheWrittenSequenceHoweverItRuns) {
  const std::vector<float> start = random_floats(70'001, 3);
  const std::vector<float> gradient = random_floats(70'001, 4, 1e-2F);
  for (const bool decoupled : {true, false}) {
    const Attributes attributes = settings(0.1, decoupled);
    std::vector<float> p = start, m(start.size()), v(start.size());
    for (int t = 1; t <= 3; ++t)
      for (std::size_t i = 0; i < p.size(); ++i)
        adamw_reference(p[i], m[i], v[i], gradient[i], control_at(t, 1e-3F, 0.3F), attributes);
    for (const auto& [name, runner] : all_runners()) {
      Optimizer optimizer(start);
      for (int t = 1; t <= 3; ++t)
        optimizer.step(runner, gradient, control_at(t, 1e-3F, 0.3F), attributes);
      ASSERT_EQ(optimizer.parameters(), p) << name;
      ASSERT_EQ(optimizer.operands[1].values<float>(), m) << name;
      ASSERT_EQ(optimizer.operands[2].values<float>(), v) << name;
    }
  }
}

TEST(Adamw, WritesTheRoundedParameterInTheSamePass) {
  const Runner runner = any_runner();
  const std::vector<float> start = random_floats(10'001, 3);
  const std::vector<float> gradient = random_floats(10'001, 4);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Attributes attributes = settings(0.1, true);
    attributes.set("parameter_dtype", static_cast<double>(dtype));
    Optimizer optimizer(start);
    optimizer.step(runner, gradient, control_at(1, 1e-3F, 1), attributes);
    const std::vector<float> master = optimizer.parameters();
    const auto parameter = optimizer.fresh.at(0).values<std::uint16_t>();
    ASSERT_EQ(parameter.size(), master.size());
    for (std::size_t i = 0; i < master.size(); ++i)
      ASSERT_EQ(parameter[i],
                dtype == DType::bf16 ? master_to_bf16(master[i]) : f32_to_f16(master[i]));
  }
}

TEST(Adamw, SixteenBitGradientsCountAsTheNumbersTheyHold) {
  const Runner runner = any_runner();
  const std::vector<float> start = random_floats(70'001, 3);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<float> gradient = random_floats(70'001, 4);
    const TestTensor stored = rounded_tensor(dtype, gradient);
    Optimizer wide(start), narrow(start);
    wide.step(runner, gradient, control_at(1, 1e-3F, 0.3F), settings(0.1, false));
    narrow.operands[3] = stored;
    narrow.operands[4] = TestTensor::from_struct(control_at(1, 1e-3F, 0.3F));
    run_kernel(runner, adamw_operation(), narrow.operands, settings(0.1, false), narrow.fresh);
    EXPECT_TRUE(narrow.parameters() == wide.parameters()) << name_of(dtype);
    EXPECT_TRUE(narrow.operands[2].bytes() == wide.operands[2].bytes()) << name_of(dtype);
  }
}

TEST(Adamw, LeavesItsInputsAloneWhenNotInPlace) {
  const Runner runner = any_runner();
  const std::vector<float> start = random_floats(100, 3);
  Optimizer optimizer(start);
  optimizer.step(runner, random_floats(100, 4), control_at(1, 1e-3F, 1), settings(0, true), false);
  EXPECT_EQ(optimizer.parameters(), start);
  EXPECT_NE(optimizer.fresh.at(0).values<float>(), start);
}

TEST(Adamw, RefusesOperandsOfDifferentLength) {
  const TensorType range(DType::f32, {8});
  const TensorType control(DType::u8, {sizeof(StepControl)});
  EXPECT_THROW(
      adamw_operation().infer(Types{range, range, range, TensorType(DType::f32, {9}), control},
                              settings(0, true)),
      InvalidArgument);
  EXPECT_THROW(adamw_operation().infer(Types{range, range, range, control}, settings(0, true)),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

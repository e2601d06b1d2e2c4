#include "kernels/ops/sgd.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/math/float16.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

struct Settings {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.SGD in double by the plain formula.
struct Exact {
  double p, b = 0;
  void step(int t, double g, double rate, const Settings& s) {
    g += s.weight_decay * p;
    if (s.momentum > 0) {
      b = t == 1 ? g : s.momentum * b + (1 - s.dampening) * g;
      g = s.nesterov ? g + s.momentum * b : b;
    }
    p -= rate * g;
  }
};

std::vector<TestTensor> operands(const std::vector<float>& start, bool momentum) {
  const Shape shape{static_cast<std::int64_t>(start.size())};
  std::vector<TestTensor> inputs;
  inputs.emplace_back(DType::f32, shape, start);
  if (momentum) inputs.emplace_back(DType::f32, shape, std::vector<float>(start.size(), 77));
  inputs.emplace_back(TensorType(DType::f32, shape));
  inputs.push_back(TestTensor::from_struct(StepControl{}));
  return inputs;
}

void expect_follows(const Settings& s) {
  constexpr std::int64_t kCount = 9000;
  const Runner runner = any_runner();
  const std::vector<float> start = random_floats(kCount, 1);
  std::vector<TestTensor> inputs = operands(start, s.momentum > 0);
  std::vector<Exact> exact;
  for (float p : start) exact.push_back({.p = p});
  const Attributes attributes{{"momentum", s.momentum},
                              {"dampening", s.dampening},
                              {"weight_decay", s.weight_decay},
                              {"nesterov", s.nesterov ? 1.0 : 0.0},
                              {"parameter_dtype", static_cast<double>(DType::bf16)}};
  std::vector<TestTensor> fresh;
  for (int t = 1; t <= 20; ++t) {
    const std::vector<float> gradient = random_floats(kCount, static_cast<std::uint32_t>(t), 4);
    StepControl control;
    control.gradient_factor = 0.5F;
    control.learning_rate = 0.125F;
    control.first_update = t == 1 ? 1 : 0;
    std::memcpy(inputs[inputs.size() - 2].bytes().data(), gradient.data(),
                gradient.size() * sizeof(float));
    inputs.back() = TestTensor::from_struct(control);
    fresh.clear();
    run_kernel(runner, sgd_operation(), inputs, attributes, fresh);
    if (s.momentum > 0) inputs[1] = fresh.front();
    for (std::size_t i = 0; i < exact.size(); ++i)
      exact[i].step(t, 0.5 * static_cast<double>(gradient[i]), 0.125, s);
  }
  const auto master = inputs[0].values<float>();
  const auto parameter = fresh.back().values<std::uint16_t>();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(master[i], exact[i].p, 3e-5) << i;
    ASSERT_EQ(parameter[i], master_to_bf16(master[i]));
  }
}

TEST(Sgd, Plain) { expect_follows({}); }
TEST(Sgd, WeightDecay) { expect_follows({.weight_decay = 0.1}); }
TEST(Sgd, MomentumStartsAsACopyOfTheGradient) {
  expect_follows({.momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01});
}
TEST(Sgd, Nesterov) { expect_follows({.momentum = 0.9, .nesterov = true}); }

TEST(Sgd, SixteenBitGradientsCountAsTheNumbersTheyHold) {
  const std::vector<float> start = random_floats(70'001, 1);
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const bool momentum : {false, true}) {
      std::vector<float> gradient = random_floats(70'001, 2);
      const TestTensor narrow = rounded_tensor(dtype, gradient);
      const TestTensor wide = rounded_tensor(DType::f32, gradient);
      const Attributes attributes{{"momentum", momentum ? 0.9 : 0}, {"weight_decay", 0.1}};
      std::vector<std::vector<float>> results;
      for (const TestTensor& stored : {narrow, wide}) {
        std::vector<TestTensor> inputs = operands(start, momentum), fresh;
        StepControl control;
        control.learning_rate = 0.1F;
        inputs[inputs.size() - 2] = stored;
        inputs.back() = TestTensor::from_struct(control);
        run_kernel(any_runner(), sgd_operation(), inputs, attributes, fresh);
        results.push_back(inputs[0].values<float>());
      }
      EXPECT_TRUE(results[0] == results[1]) << name_of(dtype) << ' ' << momentum;
      EXPECT_FALSE(results[0] == start);
    }
}

TEST(Sgd, GivesTheSameBitsHoweverItRuns) {
  const std::vector<float> start = random_floats(1001, 1);
  const std::vector<float> gradient = random_floats(1001, 2);
  const Attributes attributes{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", 1}};
  std::vector<std::vector<float>> results;
  for (const NamedRunner& runner : all_runners()) {
    std::vector<TestTensor> inputs = operands(start, true);
    StepControl control;
    control.learning_rate = 0.1F;
    std::memcpy(inputs[inputs.size() - 2].bytes().data(), gradient.data(),
                gradient.size() * sizeof(float));
    inputs.back() = TestTensor::from_struct(control);
    std::vector<TestTensor> fresh;
    run_kernel(runner.run, sgd_operation(), inputs, attributes, fresh);
    results.push_back(inputs[0].values<float>());
  }
  ASSERT_GE(results.size(), 2U);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace strata::kernels

#include "kernels/ops/adamw_8bit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/math/dynamic_map.h"
#include "kernels/math/float16.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/adam_test_support.h"
#include "kernels/testing/adamw_reference.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

/// The paper's numbers in ascending order: 7 decades of 1, 2, 4, ... (unsigned: 2, 4, 8, ...)
/// numbers in the middles of equal parts of [0.1, 1], and 0 and 1.
std::vector<double> papers_numbers(bool is_signed) {
  std::vector<double> numbers{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int count = 1 << (is_signed ? decade : decade + 1);
    for (int k = 0; k < count; ++k) {
      const double number = std::pow(10, decade - 6) * (0.1 + 0.9 * (k + 0.5) / count);
      numbers.push_back(number);
      if (is_signed) numbers.push_back(-number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(DynamicMap, HoldsThePapersNumbers) {
  for (const bool is_signed : {true, false}) {
    const std::vector<double> numbers = papers_numbers(is_signed);
    ASSERT_EQ(numbers.size(), 256);
    for (int i = 0; i < 256; ++i) {
      // Signed codes are visited from the least number, -0.993, upwards.
      const auto code = static_cast<std::uint8_t>(is_signed ? i - 127 : i);
      const double value = is_signed ? signed_value(code) : unsigned_value(code);
      const double number = numbers[static_cast<std::size_t>(i)];
      EXPECT_NEAR(value, number, 1e-6 * std::fabs(number)) << i;
    }
  }
}

TEST(DynamicMap, FindsTheCodeOfEachOfItsNumbers) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(signed_code(signed_value(static_cast<std::uint8_t>(code))), code);
    EXPECT_EQ(unsigned_code(unsigned_value(static_cast<std::uint8_t>(code))), code);
  }
}

TEST(DynamicMap, RoundsToTheNearest) {
  const std::vector<double> both = papers_numbers(true), positive = papers_numbers(false);
  const auto nearest = [](const std::vector<double>& numbers, double y) {
    double distance = 2;
    for (const double number : numbers) distance = std::min(distance, std::fabs(number - y));
    return distance;
  };
  for (int i = 1; i <= 100'000; ++i) {
    const auto y = static_cast<float>(std::pow(10, -7.5 * (i % 1000) / 1000) * i / 100'000);
    for (const float sign : {1.0F, -1.0F})
      ASSERT_LE(std::fabs(signed_value(signed_code(sign * y)) - sign * y),
                nearest(both, sign * y) * 1.0001 + 1e-6 * y)
          << sign * y;
    if (y > 0.325e-6F / 2) {
      ASSERT_LE(std::fabs(unsigned_value(unsigned_code(y)) - y),
                nearest(positive, y) * 1.0001 + 1e-6 * y)
          << y;
    }
  }
  EXPECT_EQ(unsigned_code(0), 0);
  EXPECT_EQ(unsigned_code(1e-30F), 1);  // not zero
  EXPECT_EQ(unsigned_code(1), 255);
  EXPECT_EQ(signed_code(0), 0);
  EXPECT_EQ(signed_code(1e-30F), 0);
  EXPECT_EQ(signed_code(-1e-30F), 0);
  EXPECT_EQ(signed_code(1), 128);
  EXPECT_EQ(signed_code(-1), 129);
  EXPECT_EQ(signed_value(0), 0);
  EXPECT_EQ(unsigned_value(0), 0);
}

Attributes settings(double weight_decay, bool decoupled = true) {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"eps", 1e-8},
          {"weight_decay", weight_decay},
          {"decoupled", decoupled ? 1.0 : 0.0}};
}

struct State {
  std::vector<float> p;
  std::vector<std::uint8_t> m, v;
  std::vector<float> m_scale, v_scale;

  explicit State(std::vector<float> parameters)
      : p(std::move(parameters)),
        m(p.size()),
        v(p.size()),
        m_scale(p.size() / 128),
        v_scale(p.size() / 128) {}
  bool operator==(const State&) const = default;
};

State step(const Runner& runner, const State& state, const TestTensor& gradient,
           const StepControl& control, const Attributes& attributes,
           std::vector<TestTensor>* fresh = nullptr) {
  const auto n = static_cast<std::int64_t>(state.p.size());
  std::vector<TestTensor> inputs, none;
  inputs.emplace_back(DType::f32, Shape{n}, state.p);
  inputs.emplace_back(DType::u8, Shape{n}, state.m);
  inputs.emplace_back(DType::u8, Shape{n}, state.v);
  inputs.emplace_back(DType::f32, Shape{n / 128}, state.m_scale);
  inputs.emplace_back(DType::f32, Shape{n / 128}, state.v_scale);
  inputs.push_back(gradient);
  inputs.push_back(TestTensor::from_struct(control));
  run_kernel(runner, adamw_8bit_operation(), inputs, attributes, fresh != nullptr ? *fresh : none);
  State after(inputs[0].values<float>());
  after.m = inputs[1].values<std::uint8_t>();
  after.v = inputs[2].values<std::uint8_t>();
  after.m_scale = inputs[3].values<float>();
  after.v_scale = inputs[4].values<float>();
  return after;
}

/// Computes the definition, block by block.
State reference(State state, const std::vector<float>& gradient, const StepControl& control,
                const Attributes& attributes) {
  for (std::size_t block = 0; block < state.m_scale.size(); ++block) {
    float m[128], v[128], largest_m = 0, largest_v = 0;
    for (std::size_t j = 0; j < 128; ++j) {
      const std::size_t i = 128 * block + j;
      m[j] = signed_value(state.m[i]) * state.m_scale[block];
      v[j] = unsigned_value(state.v[i]) * state.v_scale[block];
      adamw_reference(state.p[i], m[j], v[j], gradient[i], control, attributes);
      largest_m = std::max(largest_m, std::fabs(m[j]));
      largest_v = std::max(largest_v, v[j]);
    }
    state.m_scale[block] = largest_m;
    state.v_scale[block] = largest_v;
    for (std::size_t j = 0; j < 128; ++j) {
      state.m[128 * block + j] = signed_code(m[j] / (largest_m == 0 ? 1 : largest_m));
      state.v[128 * block + j] = unsigned_code(v[j] / (largest_v == 0 ? 1 : largest_v));
    }
  }
  return state;
}

/// Gradients of sizes from 1e-6 to 1, with a block of zeros.
std::vector<float> gradients_of_all_sizes(std::int64_t n, std::uint32_t seed) {
  std::vector<float> gradient = random_floats(n, seed);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] *= std::pow(10.0F, -static_cast<float>(i % 7));
  std::fill_n(gradient.begin() + 256, 128, 0.0F);
  return gradient;
}

TEST(Adamw8bit, GivesTheBitsOfTheWrittenSequenceHoweverItRuns) {
  const std::int64_t n = 128 * 1100;  // more than one task
  for (const bool decoupled : {true, false}) {
    const State start(random_floats(n, 1));
    State expected = start;
    std::vector<State> found;
    const auto runners = all_runners();
    found.assign(runners.size(), start);
    for (int t = 1; t <= 3; ++t) {
      const std::vector<float> gradient =
          gradients_of_all_sizes(n, static_cast<std::uint32_t>(t) + 4);
      expected = reference(expected, gradient, control_at(t, 1e-3F), settings(0.1, decoupled));
      for (std::size_t i = 0; i < runners.size(); ++i) {
        found[i] = step(runners[i].run, found[i], TestTensor(DType::f32, {n}, gradient),
                        control_at(t, 1e-3F), settings(0.1, decoupled));
        ASSERT_TRUE(found[i] == expected) << runners[i].name << ", step " << t;
      }
    }
  }
}

TEST(Adamw8bit, ReadsAndWritesSixteenBitNumbersInTheSamePass) {
  const std::int64_t n = 1280;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const NamedRunner& runner : all_runners()) {
      std::vector<float> gradient = gradients_of_all_sizes(n, 4);
      const TestTensor stored = rounded_tensor(dtype, gradient);
      const State start(random_floats(n, 1));
      Attributes attributes = settings(0.1);
      attributes.set("parameter_dtype", static_cast<double>(dtype));
      std::vector<TestTensor> fresh;
      const State after = step(runner.run, start, stored, control_at(1, 1e-3F), attributes, &fresh);
      ASSERT_TRUE(after == reference(start, gradient, control_at(1, 1e-3F), settings(0.1)))
          << runner.name;
      const auto parameter = fresh.at(0).values<std::uint16_t>();
      for (std::size_t i = 0; i < after.p.size(); ++i)
        ASSERT_EQ(parameter[i],
                  dtype == DType::bf16 ? master_to_bf16(after.p[i]) : f32_to_f16(after.p[i]))
            << runner.name;
    }
}

// Minimizes (p - target)^2 / 2 with noise in its gradient.
TEST(Adamw8bit, ConvergesLikeAdamw) {
  const std::int64_t n = 256;
  const Runner runner = any_runner();
  const std::vector<float> target = random_floats(n, 2);
  State state(std::vector<float>(static_cast<std::size_t>(n)));
  std::vector<float> p = state.p, m = p, v = p;
  for (int t = 1; t <= 400; ++t) {
    const std::vector<float> noise = random_floats(n, static_cast<std::uint32_t>(t) + 9, 0.1F);
    const StepControl control = control_at(t, 0.02F);
    std::vector<float> gradient(target.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      gradient[i] = 2 * (state.p[i] - target[i] + noise[i]);
      adamw_reference(p[i], m[i], v[i], 2 * (p[i] - target[i] + noise[i]), control, settings(0));
    }
    state = step(runner, state, TestTensor(DType::f32, {n}, gradient), control, settings(0));
  }
  double error = 0, error_of_adamw = 0, start = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    error += std::pow(state.p[i] - target[i], 2);
    error_of_adamw += std::pow(p[i] - target[i], 2);
    start += std::pow(target[i], 2);
  }
  EXPECT_LT(error_of_adamw, 1e-3 * start);
  EXPECT_LT(error, 1.25 * error_of_adamw);
}

TEST(Adamw8bit, MakesABlockNaNThatHasANumberThatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const NamedRunner& runner : all_runners()) {
      std::vector<float> gradient(384, 0.1F);
      gradient[130] = bad;
      State state(random_floats(384, 1));
      for (int t = 1; t <= 2; ++t) {
        state = step(runner.run, state, TestTensor(DType::f32, {384}, gradient),
                     control_at(t, 1e-3F), settings(0.1));
        gradient[130] = 0;
      }
      for (std::size_t i = 0; i < 384; ++i)
        ASSERT_EQ(std::isnan(state.p[i]), i / 128 == 1) << runner.name << ' ' << i;
    }
}

TEST(Adamw8bit, RefusesOtherTypesAndPartsOfBlocks) {
  const auto types = [](std::int64_t n, std::int64_t blocks) {
    const TensorType full(DType::f32, {n}), code(DType::u8, {n}), scale(DType::f32, {blocks});
    return Types{full, code, code, scale, scale, full, {DType::u8, {sizeof(StepControl)}}};
  };
  const auto infer = [&](const Types& inputs) {
    return adamw_8bit_operation().infer(inputs, settings(0));
  };
  const Types good = types(256, 2);
  EXPECT_EQ(infer(good), Types(good.begin(), good.begin() + 5));
  EXPECT_THROW(infer(types(200, 2)), InvalidArgument);
  EXPECT_THROW(infer(types(256, 1)), InvalidArgument);
  Types signed_codes = good;
  signed_codes[1] = TensorType(DType::f32, {256});
  EXPECT_THROW(infer(signed_codes), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

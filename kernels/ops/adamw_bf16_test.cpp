#include "kernels/ops/adamw_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/math/philox.h"
#include "kernels/math/stochastic_rounding.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/adam_test_support.h"
#include "kernels/testing/adamw_reference.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

using Halves = std::vector<std::uint16_t>;

Halves rounded(const std::vector<float>& values) {
  Halves halves;
  for (float value : values) halves.push_back(f32_to_bf16(value));
  return halves;
}

Attributes settings(std::int64_t first = 0, bool decoupled = true, std::int64_t key = 5) {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"eps", 1e-8},
          {"weight_decay", 0.1},
          {"decoupled", decoupled ? 1.0 : 0.0},
          {"key", static_cast<double>(key)},
          {"first", static_cast<double>(first)}};
}

struct State {
  Halves p, m, v;
  bool operator==(const State&) const = default;
};

State random_state(std::int64_t count, std::uint32_t seed) {
  std::vector<float> v = random_floats(count, seed + 2, 1e-2F);
  for (float& value : v) value *= value;
  return {rounded(random_floats(count, seed)), rounded(random_floats(count, seed + 1, 1e-2F)),
          rounded(v)};
}

State piece(const State& state, std::int64_t begin, std::int64_t end) {
  const auto cut = [&](const Halves& all) {
    return Halves(all.begin() + begin, all.begin() + end);
  };
  return {cut(state.p), cut(state.m), cut(state.v)};
}

/// Returns the state after one step; `gradient` is given to the kernel as bf16 or as fp32.
State step(const Runner& runner, const State& state, const std::vector<float>& gradient,
           DType gradient_dtype, const StepControl& control, const Attributes& attributes,
           std::vector<std::int64_t> rng = {17, 3, 0}) {
  const Shape shape{static_cast<std::int64_t>(state.p.size())};
  std::vector<TestTensor> inputs, fresh;
  inputs.emplace_back(DType::bf16, shape, state.p);
  inputs.emplace_back(DType::bf16, shape, state.m);
  inputs.emplace_back(DType::bf16, shape, state.v);
  if (gradient_dtype == DType::f32)
    inputs.emplace_back(DType::f32, shape, gradient);
  else
    inputs.emplace_back(DType::bf16, shape, rounded(gradient));
  inputs.push_back(TestTensor::from_struct(control));
  inputs.emplace_back(DType::i64, Shape{static_cast<std::int64_t>(rng.size())}, rng);
  run_kernel(runner, adamw_bf16_operation(), inputs, attributes, fresh);
  return {inputs[0].values<std::uint16_t>(), inputs[1].values<std::uint16_t>(),
          inputs[2].values<std::uint16_t>()};
}

/// Computes the definition, element by element.
State reference(State state, const std::vector<float>& gradient, DType gradient_dtype,
                const StepControl& control, const Attributes& attributes) {
  const RandomSource source(17, 3, -1, attributes.integer("key"));
  for (std::size_t i = 0; i < state.p.size(); ++i) {
    float p = bf16_to_f32(state.p[i]), m = bf16_to_f32(state.m[i]), v = bf16_to_f32(state.v[i]);
    const float g =
        gradient_dtype == DType::f32 ? gradient[i] : bf16_to_f32(f32_to_bf16(gradient[i]));
    adamw_reference(p, m, v, g, control, attributes);
    const std::uint32_t word =
        source.word(static_cast<std::uint64_t>(attributes.integer("first")) + i);
    state.p[i] = f32_to_bf16_stochastic(p, word >> 16);
    state.m[i] = f32_to_bf16_stochastic(m, word & 0xFFFF);
    state.v[i] = f32_to_bf16_stochastic(v, (word * 0x9E3779B1u) >> 16);
  }
  return state;
}

TEST(AdamwBf16, GivesTheBitsOfTheWrittenSequenceHoweverItRuns) {
  const State start = random_state(2'501, 1);
  const std::vector<float> gradient = random_floats(2'501, 9, 1e-2F);
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const std::int64_t first : {0, 1, 4094, 1 << 30})
      for (const bool decoupled : {true, false}) {
        const Attributes attributes = settings(first, decoupled);
        const State expected = reference(start, gradient, dtype, control_at(2, 0.01F), attributes);
        for (const NamedRunner& runner : all_runners())
          ASSERT_TRUE(step(runner.run, start, gradient, dtype, control_at(2, 0.01F), attributes) ==
                      expected)
              << runner.name << ' ' << name_of(dtype) << " from " << first;
      }
}

TEST(AdamwBf16, DependsOnAnElementsPlaceAndNotOnItsOwner) {
  const Runner runner = any_runner();
  const std::int64_t count = 5'000;
  const State start = random_state(count, 1);
  const std::vector<float> gradient = random_floats(count, 9, 1e-2F);
  const StepControl control = control_at(2, 0.01F);
  const State whole = step(runner, start, gradient, DType::f32, control, settings(100));
  for (const std::int64_t border : {1, 1024, 3333}) {
    const std::vector<float> low(gradient.begin(), gradient.begin() + border),
        high(gradient.begin() + border, gradient.end());
    EXPECT_TRUE(step(runner, piece(start, 0, border), low, DType::f32, control, settings(100)) ==
                piece(whole, 0, border));
    EXPECT_TRUE(step(runner, piece(start, border, count), high, DType::f32, control,
                     settings(100 + border)) == piece(whole, border, count));
  }
}

TEST(AdamwBf16, DrawsOtherNumbersInEachStepUnitAndRun) {
  const Runner runner = any_runner();
  const State start = random_state(1'000, 1);
  const std::vector<float> gradient = random_floats(1'000, 9, 1e-2F);
  const auto run = [&](std::vector<std::int64_t> rng, std::int64_t key) {
    return step(runner, start, gradient, DType::f32, control_at(2, 0.01F), settings(0, true, key),
                std::move(rng));
  };
  const State one = run({17, 3}, 5);
  EXPECT_TRUE(one == run({17, 3, 44, 45}, 5));  // samples do not matter
  for (const State& other : {run({18, 3}, 5), run({17, 4}, 5), run({17, 3}, 6)}) {
    EXPECT_NE(one.p, other.p);
    EXPECT_NE(one.m, other.m);
    EXPECT_NE(one.v, other.v);
  }
}

double mean(const Halves& values) {
  double sum = 0;
  for (std::uint16_t value : values) sum += static_cast<double>(bf16_to_f32(value));
  return sum / static_cast<double>(values.size());
}

// Numbers near 1, 1e-3 and 1e-6 move by a few hundredths of a unit in the last place per step:
// rounded to nearest, none of them would ever move.
TEST(AdamwBf16, MovesByTheRightAmountOnAverage) {
  constexpr std::int64_t kCount = 20'000;
  const Runner runner = any_runner();
  const std::vector<float> gradient(kCount, 2 * 1.01e-3F);
  State state{Halves(kCount, f32_to_bf16(1)), Halves(kCount, f32_to_bf16(1e-3F)),
              Halves(kCount, f32_to_bf16(1e-6F))};
  const Attributes attributes{{"beta1", 0.99}, {"beta2", 0.999},   {"eps", 1e-8},
                              {"key", 1},      {"decoupled", 1.0}, {"weight_decay", 0}};
  float p = bf16_to_f32(state.p[0]), m = bf16_to_f32(state.m[0]), v = bf16_to_f32(state.v[0]);
  const State start = state;
  for (int t = 1; t <= 20; ++t) {
    const StepControl control = control_at(1000, 1e-4F);
    state = step(runner, state, gradient, DType::f32, control, attributes, {1, t});
    adamw_reference(p, m, v, gradient[0], control, attributes);
  }
  const double moved_p = bf16_to_f32(start.p[0]) - p, moved_m = m - bf16_to_f32(start.m[0]),
               moved_v = v - bf16_to_f32(start.v[0]);
  EXPECT_NEAR(1 - mean(state.p), moved_p, 0.1 * moved_p);
  EXPECT_NEAR(mean(state.m) - bf16_to_f32(start.m[0]), moved_m, 0.1 * moved_m);
  EXPECT_NEAR(mean(state.v) - bf16_to_f32(start.v[0]), moved_v, 0.1 * std::fabs(moved_v));
}

TEST(AdamwBf16, KeepsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  State start = random_state(64, 1);
  start.p[3] = f32_to_bf16(infinity);
  start.p[9] = f32_to_bf16(nan);
  const State after = step(any_runner(), start, std::vector<float>(64, 0.1F), DType::bf16,
                           control_at(2, 0.01F), settings(0, false));
  EXPECT_TRUE(std::isnan(bf16_to_f32(after.p[3])));  // infinity / infinity
  EXPECT_TRUE(std::isnan(bf16_to_f32(after.p[9])));
  EXPECT_EQ(bf16_to_f32(after.v[3]), infinity);
  EXPECT_TRUE(std::isfinite(bf16_to_f32(after.p[4])));
}

TEST(AdamwBf16, RefusesOtherTypes) {
  const TensorType half(DType::bf16, {8}), full(DType::f32, {8}), rng(DType::i64, {2});
  const TensorType control(DType::u8, {sizeof(StepControl)});
  const auto infer = [&](const Types& types) {
    return adamw_bf16_operation().infer(types, settings());
  };
  EXPECT_EQ(infer({half, half, half, full, control, rng}), (Types{half, half, half}));
  EXPECT_THROW(infer({full, half, half, half, control, rng}), InvalidArgument);
  EXPECT_THROW(infer({half, half, half, half, control}), InvalidArgument);
  EXPECT_THROW(infer({half, half, half, half, control, TensorType(DType::i64, {1})}),
               InvalidArgument);
}

TEST(StochasticRounding, IsExactOnAverageAndForNumbersThatFit) {
  for (const float value : {1.0F, -1.0F, 1.0F + 0x1p-9F, -1.7F, 0x1.23456p-100F, 0x1p-140F}) {
    double sum = 0;
    for (std::uint32_t random = 0; random < 65536; ++random)
      sum += static_cast<double>(bf16_to_f32(f32_to_bf16_stochastic(value, random)));
    EXPECT_EQ(sum / 65536, value);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bf16_to_f32(f32_to_bf16_stochastic(infinity, 65535)), infinity);
  EXPECT_TRUE(std::isnan(
      bf16_to_f32(f32_to_bf16_stochastic(std::numeric_limits<float>::quiet_NaN(), 65535))));
}

TEST(StochasticRounding, BitsOfTheSecondMomentAreUniformWhateverTheOthersAre) {
  for (const std::uint32_t fixed : {0u, 1u, 0x8000u, 0xBEEFu}) {
    std::vector<int> with_parameter(256), with_m(256);
    for (std::uint32_t half = 0; half < 65536; ++half) {
      ++with_parameter[stochastic_bits(fixed << 16 | half).v >> 8];
      ++with_m[stochastic_bits(half << 16 | fixed).v >> 8];
    }
    for (std::size_t i = 0; i < 256; ++i) {
      EXPECT_NEAR(with_parameter[i], 256, 32);
      EXPECT_NEAR(with_m[i], 256, 32);
    }
  }
}

}  // namespace
}  // namespace strata::kernels

// AdamW whose state is kept in other formats: packed masters, bf16 moments.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/math/philox.h"
#include "kernels/math/stochastic_rounding.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/step_state.h"
#include "kernels/testing/adam_test_support.h"
#include "kernels/testing/adamw_reference.h"
#include "kernels/testing/kernel_test_support.h"
#include "kernels/testing/packed_test_support.h"

namespace strata::kernels {
namespace {

Attributes settings(std::int64_t first = 0) {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"eps", 1e-8},
          {"decoupled", 1.0},
          {"key", 5},
          {"weight_decay", 0.1},
          {"first", static_cast<double>(first)}};
}

Attributes with_parameter(Attributes attributes) {
  attributes.set("parameter_dtype", static_cast<double>(DType::bf16));
  return attributes;
}

constexpr std::int64_t kSeed = 17, kStep = 3;
constexpr float kLearningRate = 1e-3F;

/// Appends the other operands of adamw or adamw_packed to `state`.
std::vector<TestTensor> operands(std::vector<TestTensor> state, const TestTensor& gradient,
                                 const StepControl& control, bool stochastic) {
  state.push_back(gradient);
  state.push_back(TestTensor::from_struct(control));
  if (stochastic) state.emplace_back(DType::i64, Shape{2}, std::vector<std::int64_t>{kSeed, kStep});
  return state;
}

TestTensor moment(DType dtype, std::vector<float> values) { return rounded_tensor(dtype, values); }

std::vector<float> squares(std::vector<float> values) {
  for (float& value : values) value *= value;
  return values;
}

TEST(AdamwPacked, GivesTheBitsOfAnUnpackedMaster) {
  const std::int64_t count = 2'501;
  const std::vector<float> start = masters_of_every_kind(count);
  const Shape shape{count};
  for (const NamedRunner& runner : all_runners())
    for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16})
      for (const DType moments : {DType::f32, DType::bf16}) {
        const bool stochastic = moments == DType::bf16;
        const TestTensor m = moment(moments, random_floats(count, 5, 1e-2F)),
                         v = moment(moments, squares(random_floats(count, 6, 1e-2F)));
        std::vector<TestTensor> plain{TestTensor(DType::f32, shape, start), m, v};
        std::vector<TestTensor> packed = packed_tensors(start);
        packed.push_back(m);
        packed.push_back(v);
        for (int t = 1; t <= 3; ++t) {
          std::vector<float> values = random_floats(count, static_cast<std::uint32_t>(t), 1e-2F);
          const TestTensor gradient = rounded_tensor(gradient_dtype, values);
          std::vector<TestTensor> fresh, none;
          plain.resize(3, plain[0]);
          packed.resize(4, packed[0]);
          plain = operands(plain, gradient, control_at(t, kLearningRate), stochastic);
          packed = operands(packed, gradient, control_at(t, kLearningRate), stochastic);
          run_kernel(runner.run, adamw_operation(), plain, with_parameter(settings(44)), fresh);
          run_kernel(runner.run, adamw_packed_operation(), packed, settings(44), none);
          ASSERT_TRUE(none.empty()) << "all of the state is updated in place";
          const std::string label = runner.name + " " + std::string(name_of(gradient_dtype)) +
                                    ", moments " + std::string(name_of(moments));
          ASSERT_EQ(unpacked(packed), with_one_nan(plain[0].values<std::uint32_t>())) << label;
          ASSERT_EQ(with_one_nan(packed[0].values<std::uint16_t>()),
                    with_one_nan(fresh.at(0).values<std::uint16_t>()))
              << label;
          ASSERT_TRUE(packed[2].bytes() == plain[1].bytes()) << label;
          ASSERT_TRUE(packed[3].bytes() == plain[2].bytes()) << label;
        }
      }
}

TEST(AdamwWithBf16Moments, GivesTheBitsOfTheWrittenSequenceHoweverItRuns) {
  const std::int64_t count = 2'501;
  const std::vector<float> start = random_floats(count, 1);
  const std::vector<float> gradient = random_floats(count, 9, 1e-2F);
  for (const std::int64_t first : {0, 1, 4094, 1 << 30}) {
    std::vector<float> m = random_floats(count, 2, 1e-2F),
                       v = squares(random_floats(count, 3, 1e-2F));
    const std::vector<TestTensor> state{TestTensor(DType::f32, {count}, start),
                                        rounded_tensor(DType::bf16, m),
                                        rounded_tensor(DType::bf16, v)};
    std::vector<float> p = start;
    std::vector<std::uint16_t> m16, v16;
    const RandomSource source(kSeed, kStep, kStochasticSample, 5);
    for (std::size_t i = 0; i < p.size(); ++i) {
      adamw_reference(p[i], m[i], v[i], gradient[i], control_at(2, kLearningRate), settings());
      const std::uint32_t word = source.word(static_cast<std::uint64_t>(first) + i);
      m16.push_back(f32_to_bf16_stochastic(m[i], word & 0xFFFF));
      v16.push_back(f32_to_bf16_stochastic(v[i], (word * 0x9E3779B1u) >> 16));
    }
    for (const NamedRunner& runner : all_runners()) {
      std::vector<TestTensor> fresh,
          inputs = operands(state, TestTensor(DType::f32, {count}, gradient),
                            control_at(2, kLearningRate), true);
      run_kernel(runner.run, adamw_operation(), inputs, settings(first), fresh);
      ASSERT_EQ(inputs[0].values<float>(), p) << runner.name << " from " << first;
      ASSERT_EQ(inputs[1].values<std::uint16_t>(), m16) << runner.name << " from " << first;
      ASSERT_EQ(inputs[2].values<std::uint16_t>(), v16) << runner.name << " from " << first;
    }
  }
}

TEST(AdamwWithBf16Moments, DependsOnAnElementsPlaceAndNotOnItsOwner) {
  const std::int64_t count = 5'000;
  const std::vector<float> p = random_floats(count, 1), gradient = random_floats(count, 9, 1e-2F),
                           m = random_floats(count, 2, 1e-2F),
                           v = squares(random_floats(count, 3, 1e-2F));
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const auto cut = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + begin, all.begin() + end);
    };
    const Shape shape{end - begin};
    std::vector<TestTensor> fresh,
        inputs = operands({TestTensor(DType::f32, shape, cut(p)), moment(DType::bf16, cut(m)),
                           moment(DType::bf16, cut(v))},
                          TestTensor(DType::f32, shape, cut(gradient)),
                          control_at(2, kLearningRate), true);
    run_kernel(any_runner(), adamw_operation(), inputs, settings(100 + begin), fresh);
    return inputs[2].values<std::uint16_t>();
  };
  const std::vector<std::uint16_t> whole = run(0, count);
  for (const std::int64_t border : {1, 1024, 3333}) {
    std::vector<std::uint16_t> parts = run(0, border);
    const std::vector<std::uint16_t> rest = run(border, count);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << border;
  }
}

// Aligned parameters are stored past the caches, others are not.
TEST(Adamw, WritesTheSameParameterWhereverItLies) {
  const std::int64_t count = 1'003;
  const std::vector<float> start = random_floats(count, 1), gradient = random_floats(count, 2);
  const TestTensor zero(TensorType(DType::f32, {count}));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Attributes attributes = settings();
    attributes.set("parameter_dtype", static_cast<double>(dtype));
    for (const NamedRunner& runner : all_runners())
      for (const std::int64_t lead : {0, 1, 16}) {
        std::vector<TestTensor> inputs = operands(
            {TestTensor(DType::f32, {count}, start), zero, zero},
            TestTensor(DType::f32, {count}, gradient), control_at(1, kLearningRate), false);
        std::vector<Tensor> in, out;
        for (TestTensor& input : inputs) in.push_back(input.view());
        out.assign(in.begin(), in.begin() + 3);
        const std::int64_t size = size_of(dtype);
        std::vector<std::byte> storage(static_cast<std::size_t>((count + lead) * size + 192),
                                       std::byte{0xA5});
        const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
        const auto begin =
            static_cast<std::int64_t>((address + 63) / 64 * 64 - address) + lead * size;
        out.push_back({TensorType(dtype, {count}), storage.data() + begin});
        runner.run(adamw_operation(), in, out, attributes);
        const std::vector<float> master = inputs[0].values<float>();
        for (std::int64_t i = 0; i < count; ++i) {
          const float value = master[static_cast<std::size_t>(i)];
          const std::byte* at = storage.data() + begin + i * size;
          if (dtype == DType::f32) {
            ASSERT_EQ(std::memcmp(at, &value, 4), 0) << runner.name << ' ' << i;
          } else {
            const std::uint16_t expected =
                dtype == DType::bf16 ? master_to_bf16(value) : f32_to_f16(value);
            ASSERT_EQ(std::memcmp(at, &expected, 2), 0) << runner.name << ' ' << i;
          }
        }
        const auto outside = [&](std::int64_t from, std::int64_t to) {
          return std::count(storage.begin() + from, storage.begin() + to, std::byte{0xA5}) ==
                 to - from;
        };
        ASSERT_TRUE(outside(0, begin)) << runner.name;
        ASSERT_TRUE(outside(begin + count * size, std::ssize(storage))) << runner.name;
      }
  }
}

TEST(AdamwFormats, RefusesOtherTypes) {
  const TensorType full(DType::f32, {8}), half(DType::bf16, {8}), rest(DType::i16, {8}),
      rng(DType::i64, {2}), control(DType::u8, {sizeof(StepControl)});
  const auto plain = [&](const Types& types) {
    return adamw_operation().infer(types, with_parameter(settings()));
  };
  const auto packed = [&](const Types& types) {
    return adamw_packed_operation().infer(types, settings());
  };
  EXPECT_EQ(plain({full, half, half, half, control, rng}), (Types{full, half, half, half}));
  EXPECT_THROW(plain({full, half, half, half, control}), InvalidArgument);
  EXPECT_THROW(plain({full, full, full, half, control, rng}), InvalidArgument);
  EXPECT_THROW(plain({full, half, full, half, control, rng}), InvalidArgument);
  EXPECT_THROW(plain({full, half, half, half, control, TensorType(DType::i64, {1})}),
               InvalidArgument);
  EXPECT_EQ(packed({half, rest, full, full, half, control}), (Types{half, rest, full, full}));
  EXPECT_EQ(packed({half, rest, half, half, full, control, rng}), (Types{half, rest, half, half}));
  EXPECT_THROW(packed({half, half, full, full, half, control}), InvalidArgument);
  EXPECT_THROW(packed({full, rest, full, full, half, control}), InvalidArgument);
  EXPECT_THROW(packed({half, TensorType(DType::i16, {9}), full, full, half, control}),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

#include "kernels/ops/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/testing/float16_test_support.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

Attributes to_type(DType dtype, bool master = false) {
  return {{"dtype", static_cast<double>(dtype)}, {"master", master ? 1.0 : 0.0}};
}

std::uint32_t widened(std::uint16_t bits, DType type) {
  return std::bit_cast<std::uint32_t>(type == DType::bf16 ? bf16_to_f32(bits) : f16_to_f32(bits));
}

/// Returns every seventh value, which still has all cases several times.
std::vector<float> thinned(const std::vector<float>& values) {
  std::vector<float> some;
  for (std::size_t i = 0; i < values.size(); i += 7) some.push_back(values[i]);
  return some;
}

/// Returns elements as fp32 bits, with one NaN for all, because devices make one of their own.
std::vector<std::uint32_t> comparable(const TestTensor& tensor, DType type) {
  std::vector<std::uint32_t> bits;
  if (type == DType::f32)
    bits = tensor.values<std::uint32_t>();
  else
    for (const std::uint16_t half : tensor.values<std::uint16_t>())
      bits.push_back(widened(half, type));
  for (std::uint32_t& one : bits)
    if (std::isnan(std::bit_cast<float>(one))) one = 0x7FC00000u;
  return bits;
}

template <typename From, typename To>
void expect_converts(DType from_type, const std::vector<From>& from, DType to_dtype,
                     const std::vector<To>& expected, bool master = false) {
  const Shape shape{static_cast<std::int64_t>(from.size())};
  const TestTensor wanted(to_dtype, shape, expected);
  for (const auto& [name, runner] : all_runners()) {
    std::vector<TestTensor> inputs, outputs;
    inputs.emplace_back(from_type, shape, from);
    run_kernel(runner, convert_operation(), inputs, to_type(to_dtype, master), outputs);
    ASSERT_TRUE(comparable(outputs.at(0), to_dtype) == comparable(wanted, to_dtype))
        << name_of(from_type) << " to " << name_of(to_dtype) << ", " << name;
  }
}

TEST(Convert, GivesTheBitsOfSingleNumbersHoweverItRuns) {
  const Bits16 patterns = all_patterns();
  const std::vector<float> for_bf16 = thinned(interesting(bf16_to_f32)),
                           for_f16 = thinned(interesting(f16_to_f32));
  const auto from_bf16 = mapped<float, std::uint16_t>(patterns, bf16_to_f32);
  const auto from_f16 = mapped<float, std::uint16_t>(patterns, f16_to_f32);
  expect_converts(DType::bf16, patterns, DType::f32, from_bf16);
  expect_converts(DType::f16, patterns, DType::f32, from_f16);
  expect_converts(DType::f32, for_bf16, DType::bf16, mapped(for_bf16, f32_to_bf16));
  expect_converts(DType::f32, for_bf16, DType::bf16, mapped(for_bf16, master_to_bf16), true);
  expect_converts(DType::f32, for_f16, DType::f16, mapped(for_f16, f32_to_f16));
  expect_converts(DType::f32, for_f16, DType::f16, mapped(for_f16, f32_to_f16), true);
  expect_converts(DType::bf16, patterns, DType::f16, mapped(from_bf16, f32_to_f16));
  expect_converts(DType::f16, patterns, DType::bf16, mapped(from_f16, f32_to_bf16));
}

// Ranges are shorter than a pack, have a rest after the last pack, or are whole packs.
TEST(Convert, TakesEveryLengthAndTheSameType) {
  for (const std::int64_t count : {0, 1, 3, 7, 8, 31, 64, 2049, 5000}) {
    const std::vector<float> x = random_floats(count, 1);
    expect_converts(DType::f32, x, DType::f32, x);
    expect_converts(DType::f32, x, DType::bf16, mapped(x, f32_to_bf16));
    expect_converts(DType::f32, x, DType::f16, mapped(x, f32_to_f16));
  }
}

// Some gaps let the kernel move packs, one does not.
TEST(Convert, TakesRowsWithGaps) {
  constexpr std::int64_t kRows = 37, kCols = 48;
  for (const std::int64_t stride : {kCols, kCols + 5, kCols + 16}) {
    const std::vector<float> x = random_floats(kRows * stride, 3);
    Bits16 expected;
    for (std::int64_t i = 0; i < kRows * stride; ++i)
      if (i % stride < kCols) expected.push_back(f32_to_bf16(x[static_cast<std::size_t>(i)]));
    for (const auto& [name, runner] : all_runners()) {
      std::vector<TestTensor> inputs, outputs;
      inputs.emplace_back(TensorType(DType::f32, {kRows, kCols}, stride));
      std::memcpy(inputs[0].bytes().data(), x.data(), inputs[0].bytes().size());
      run_kernel(runner, convert_operation(), inputs, to_type(DType::bf16), outputs);
      EXPECT_EQ(outputs.at(0).values<std::uint16_t>(), expected) << stride << ", " << name;
    }
  }
}

TEST(Convert, TakesTheMasterAttributeWithGaps) {
  const float tie = std::bit_cast<float>(0x3F808000u);
  std::vector<TestTensor> inputs;
  inputs.emplace_back(TensorType(DType::f32, {2, 3}, 5));
  const std::vector<float> data = {tie, 1, 2, 99, 99, 3, 4, 5};
  std::memcpy(inputs[0].bytes().data(), data.data(), data.size() * sizeof(float));
  std::vector<TestTensor> fresh;
  run_kernel(any_runner(), convert_operation(), inputs, to_type(DType::bf16, true), fresh);
  EXPECT_EQ(fresh[0].values<std::uint16_t>(),
            (Bits16{0x3F81, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0}));
}

TEST(Convert, RefusesOtherTypes) {
  const Types ids = {TensorType(DType::i32, {4})};
  const Types floats = {TensorType(DType::f32, {4})};
  EXPECT_THROW(convert_operation().infer(ids, to_type(DType::f32)), InvalidArgument);
  EXPECT_THROW(convert_operation().infer(floats, to_type(DType::i32)), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/target_scope.h"
#include "kernels/float16.h"
#include "kernels/float16_test_support.h"
#include "kernels/kernel_test_support.h"

namespace strata::kernels {
namespace {

Attributes to_type(DType dtype, bool master = false) {
  return {{"dtype", static_cast<double>(dtype)}, {"master", master ? 1.0 : 0.0}};
}

std::uint32_t widened(std::uint16_t bits, DType type) {
  return std::bit_cast<std::uint32_t>(type == DType::bf16 ? bf16_to_f32(bits) : f16_to_f32(bits));
}

/// Every seventh: all cases several times.
std::vector<float> thinned(const std::vector<float>& values) {
  std::vector<float> some;
  for (std::size_t i = 0; i < values.size(); i += 7) some.push_back(values[i]);
  return some;
}

/// Elements as fp32 bits; every NaN alike, because devices make one of their own.
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

TEST(Convert, TakesRowsWithGapsAndTheMasterAttribute) {
  const float tie = std::bit_cast<float>(0x3F808000u);
  std::vector<TestTensor> inputs;
  inputs.emplace_back(TensorType(DType::f32, {2, 3}, 5));
  const std::vector<float> data = {tie, 1, 2, 99, 99, 3, 4, 5};
  std::memcpy(inputs[0].bytes().data(), data.data(), data.size() * sizeof(float));
  std::vector<TestTensor> fresh;
  run_kernel(any_runner(), convert_operation(), inputs,
             {{"dtype", static_cast<double>(DType::bf16)}, {"master", 1}}, fresh);
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

#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/target_scope.h"
#include "kernels/float16.h"
#include "kernels/kernel_test_support.h"

namespace strata::kernels {
namespace {

using Bits16 = std::vector<std::uint16_t>;

Bits16 all_patterns() {
  Bits16 patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  return patterns;
}

/// Every 16-bit number of a type with both neighbours in fp32, every midpoint between two of them
/// with its neighbours, and random bits: ties, subnormal numbers, overflow and NaN with all payload
/// shapes.
std::vector<float> interesting(float (*decode)(std::uint16_t)) {
  std::vector<float> values;
  const auto with_neighbours = [&](std::uint32_t bits) {
    for (const std::uint32_t delta : {0xFFFFFFFFu, 0u, 1u})
      values.push_back(std::bit_cast<float>(bits + delta));
  };
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto here = std::bit_cast<std::uint32_t>(decode(static_cast<std::uint16_t>(pattern)));
    const auto next = std::bit_cast<std::uint32_t>(decode(static_cast<std::uint16_t>(pattern + 1)));
    with_neighbours(here);
    with_neighbours(static_cast<std::uint32_t>((std::uint64_t{here} + next) / 2));
    const double middle = (static_cast<double>(std::bit_cast<float>(here)) +
                           static_cast<double>(std::bit_cast<float>(next))) /
                          2;
    if (std::isfinite(middle))
      with_neighbours(std::bit_cast<std::uint32_t>(static_cast<float>(middle)));
  }
  std::mt19937 generator(5);
  for (int i = 0; i < 200000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));
  return values;
}

/// `value` rounded to `digits` binary digits with least exponent `least`, ties to even or away from
/// zero, by arithmetic in double; beyond `largest` infinity.
double rounded(float value, int digits, int least, double largest, bool away) {
  if (value == 0 || std::isinf(value)) return value;
  const int exponent = std::max(std::ilogb(value), least) - (digits - 1);
  const double scaled = std::ldexp(static_cast<double>(value), -exponent);
  const double whole = away ? std::round(scaled) : std::nearbyint(scaled);
  const double result = std::ldexp(whole, exponent);
  return std::fabs(result) > largest ? std::copysign(HUGE_VAL, value) : result;
}

double rounded_bf16(float value, bool away) { return rounded(value, 8, -126, 0x1.FEp127, away); }
double rounded_f16(float value) { return rounded(value, 11, -14, 65504, false); }

TEST(Float16, WideningIsExact) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const int exponent = (bits >> 10) & 0x1F;
    const double mantissa = bits & 0x3FF;
    const float value = f16_to_f32(bits);
    if (exponent == 31 && mantissa != 0)
      ASSERT_TRUE(std::isnan(value));
    else if (exponent == 31)
      ASSERT_EQ(value, sign * HUGE_VAL);
    else
      ASSERT_EQ(value, exponent == 0 ? sign * std::ldexp(mantissa, -24)
                                     : sign * std::ldexp(1024 + mantissa, exponent - 25));
    ASSERT_EQ(std::signbit(value), sign < 0);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16_to_f32(bits)), pattern << 16);
  }
}

TEST(Float16, NarrowingRoundsOnce) {
  for (const float value : interesting(bf16_to_f32)) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
      ASSERT_TRUE(std::isnan(bf16_to_f32(master_to_bf16(value))));
      continue;
    }
    ASSERT_EQ(bf16_to_f32(f32_to_bf16(value)), rounded_bf16(value, false)) << value;
    ASSERT_EQ(bf16_to_f32(master_to_bf16(value)), rounded_bf16(value, true)) << value;
    ASSERT_EQ(f32_to_bf16(value) >> 15, std::signbit(value) ? 1 : 0);
  }
  for (const float value : interesting(f16_to_f32)) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      continue;
    }
    ASSERT_EQ(f16_to_f32(f32_to_f16(value)), rounded_f16(value)) << value;
    ASSERT_EQ(f32_to_f16(value) >> 15, std::signbit(value) ? 1 : 0);
  }
}

TEST(Float16, SixteenBitsComeBackUnchanged) {
  for (const std::uint16_t bits : all_patterns()) {
    if (!std::isnan(bf16_to_f32(bits))) {
      ASSERT_EQ(f32_to_bf16(bf16_to_f32(bits)), bits);
      ASSERT_EQ(master_to_bf16(bf16_to_f32(bits)), bits);
    }
    if (!std::isnan(f16_to_f32(bits))) {
      ASSERT_EQ(f32_to_f16(f16_to_f32(bits)), bits);
    }
  }
}

TEST(Float16, TiesOfAMasterGoAwayFromZero) {
  EXPECT_EQ(master_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(master_to_bf16(std::bit_cast<float>(0xBF808000u)), 0xBF81);
  EXPECT_EQ(master_to_bf16(std::bit_cast<float>(0x7F7FFFFFu)), 0x7F80);  // rounds up to infinity
  EXPECT_EQ(master_to_bf16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);  // a NaN stays one
  EXPECT_EQ(master_to_bf16(std::bit_cast<float>(0xFFFFFFFFu)), 0xFFFF);
}

/// What convert_range makes of `from`, as T.
template <typename T, typename From>
std::vector<T> converted(DType from_type, const std::vector<From>& from, DType to_type,
                         Rounding rounding = Rounding::nearest_even) {
  std::vector<T> to(from.size());
  convert_range(from_type, reinterpret_cast<const std::byte*>(from.data()), to_type,
                reinterpret_cast<std::byte*>(to.data()), static_cast<std::int64_t>(from.size()),
                rounding);
  return to;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

template <typename To, typename From>
std::vector<To> mapped(const std::vector<From>& from, To (*one)(From)) {
  std::vector<To> to;
  for (From value : from) to.push_back(one(value));
  return to;
}

TEST(ConvertRange, VectorsGiveTheBitsOfSingleNumbersOnEveryTarget) {
  const Bits16 patterns = all_patterns();
  const std::vector<float> for_bf16 = interesting(bf16_to_f32);
  const std::vector<float> for_f16 = interesting(f16_to_f32);
  with_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    EXPECT_EQ(bits_of(converted<float>(DType::bf16, patterns, DType::f32)),
              bits_of(mapped<float, std::uint16_t>(patterns, bf16_to_f32)));
    EXPECT_EQ(bits_of(converted<float>(DType::f16, patterns, DType::f32)),
              bits_of(mapped<float, std::uint16_t>(patterns, f16_to_f32)));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_bf16, DType::bf16),
              mapped(for_bf16, f32_to_bf16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_bf16, DType::bf16, Rounding::master),
              mapped(for_bf16, master_to_bf16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_f16, DType::f16),
              mapped(for_f16, f32_to_f16));
    EXPECT_EQ(converted<std::uint16_t>(DType::bf16, patterns, DType::f16),
              mapped(mapped<float, std::uint16_t>(patterns, bf16_to_f32), f32_to_f16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f16, patterns, DType::bf16),
              mapped(mapped<float, std::uint16_t>(patterns, f16_to_f32), f32_to_bf16));
  });
}

TEST(ConvertRange, EveryCountIsWrittenAndNothingBeyond) {
  const std::vector<float> from = random_floats(70, 1);
  for (std::int64_t count = 0; count <= 66; ++count) {
    Bits16 to(70, 0xABCD);
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(from.data()), DType::bf16,
                  reinterpret_cast<std::byte*>(to.data()), count);
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(to[i], static_cast<std::int64_t>(i) < count ? f32_to_bf16(from[i]) : 0xABCD);
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
  const Attributes to_i32{{"dtype", static_cast<double>(DType::i32)}};
  const Attributes to_f32{{"dtype", static_cast<double>(DType::f32)}};
  const Types ids = {TensorType(DType::i32, {4})};
  const Types floats = {TensorType(DType::f32, {4})};
  EXPECT_THROW(convert_operation().infer(ids, to_f32), InvalidArgument);
  EXPECT_THROW(convert_operation().infer(floats, to_i32), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels

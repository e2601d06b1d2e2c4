#include "train/files/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace strata::train {
namespace {

template <typename To, typename From>
To convert(DType source, From value, DType target) {
  To out{};
  convert_elements(source, reinterpret_cast<const std::byte*>(&value), target,
                   reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

/// The value of an element by definition, with `exponent_bits` and `mantissa_bits`.
double value_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct Half {
  DType type;
  int exponent_bits;
  int mantissa_bits;
};
constexpr Half kHalves[] = {{DType::bf16, 8, 7}, {DType::f16, 5, 10}};

TEST(Convert, EverySixteenBitValueWidensExactlyAndComesBack) {
  for (const Half& half : kHalves) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const double expected = value_of(bits, half.exponent_bits, half.mantissa_bits);
      const auto single = convert<float>(half.type, bits, DType::f32);
      const auto twice = convert<double>(half.type, bits, DType::f64);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(single) && std::isnan(twice)) << i;
        EXPECT_TRUE(std::isnan(value_of(convert<std::uint16_t>(DType::f32, single, half.type),
                                        half.exponent_bits, half.mantissa_bits)));
        continue;
      }
      ASSERT_EQ(single, expected) << i;
      ASSERT_EQ(twice, expected) << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f32, single, half.type), bits) << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f64, expected, half.type), bits) << i;
    }
  }
}

/// Values below the middle of two neighbours round down, those above round up, the middle rounds to
/// the even one. The values beside the middle differ from it by less than fp32 resolves, so that
/// rounding twice would fail.
TEST(Convert, RoundsOnceToNearestEven) {
  for (const Half& half : kHalves) {
    const int largest = ((1 << half.exponent_bits) - 1) << half.mantissa_bits;  // infinity
    for (int i = 0; i + 1 < largest; ++i) {
      const auto low = static_cast<std::uint16_t>(i);
      const auto high = static_cast<std::uint16_t>(i + 1);
      const double a = value_of(low, half.exponent_bits, half.mantissa_bits);
      const double b = value_of(high, half.exponent_bits, half.mantissa_bits);
      const double middle = a + (b - a) / 2;
      const std::uint16_t even = i % 2 == 0 ? low : high;
      ASSERT_EQ(convert<std::uint16_t>(DType::f64, middle, half.type), even) << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f64, std::nextafter(middle, 0.0), half.type), low)
          << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f64, std::nextafter(middle, 1e308), half.type), high)
          << i;
      const auto negative = static_cast<std::uint16_t>(even | 0x8000);
      ASSERT_EQ(convert<std::uint16_t>(DType::f64, -middle, half.type), negative) << i;
      if (static_cast<double>(static_cast<float>(middle)) != middle) continue;
      const auto single = static_cast<float>(middle);
      ASSERT_EQ(convert<std::uint16_t>(DType::f32, single, half.type), even) << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f32, std::nextafter(single, 0.0F), half.type), low)
          << i;
      ASSERT_EQ(convert<std::uint16_t>(DType::f32, std::nextafter(single, INFINITY), half.type),
                high)
          << i;
    }
  }
}

TEST(Convert, TooLargeBecomesInfinity) {
  EXPECT_EQ(convert<std::uint16_t>(DType::f32, 65519.996F, DType::f16), 0x7bff);
  EXPECT_EQ(convert<std::uint16_t>(DType::f32, 65520.0F, DType::f16), 0x7c00);
  EXPECT_EQ(convert<std::uint16_t>(DType::f32, -3e38F, DType::f16), 0xfc00);
  EXPECT_EQ(convert<std::uint16_t>(DType::f32, 3.4e38F, DType::bf16), 0x7f80);
  EXPECT_EQ(convert<std::uint16_t>(DType::f64, 1e300, DType::bf16), 0x7f80);
  EXPECT_EQ(convert<std::uint16_t>(DType::f64, 1e-300, DType::f16), 0);
  EXPECT_EQ(convert<std::uint16_t>(DType::f64, -1e-300, DType::bf16), 0x8000);
  EXPECT_EQ(convert<float>(DType::f64, 1e300, DType::f32), std::numeric_limits<float>::infinity());
}

TEST(Convert, EveryNanStaysNan) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0x7fc00000U}) {
    const auto value = std::bit_cast<float>(bits);
    EXPECT_GT(convert<std::uint16_t>(DType::f32, value, DType::bf16) & 0x7fff, 0x7f80);
    EXPECT_GT(convert<std::uint16_t>(DType::f32, value, DType::f16) & 0x7fff, 0x7c00);
  }
  EXPECT_GT(convert<std::uint16_t>(DType::f64, std::nan(""), DType::bf16) & 0x7fff, 0x7f80);
}

TEST(Convert, ArraysEqualSingleElements) {
  std::mt19937 random(1);
  std::vector<float> in(1001);
  for (float& v : in) v = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (const DType target : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> out(in.size());
    convert_elements(DType::f32, reinterpret_cast<const std::byte*>(in.data()), target,
                     reinterpret_cast<std::byte*>(out.data()),
                     static_cast<std::int64_t>(in.size()));
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out[i], convert<std::uint16_t>(DType::f32, in[i], target)) << i;
  }
}

TEST(Convert, OnlyFloatsConvert) {
  EXPECT_TRUE(can_convert(DType::i64, DType::i64));
  EXPECT_FALSE(can_convert(DType::i64, DType::f32));
  EXPECT_FALSE(can_convert(DType::f32, DType::u8));
}

}  // namespace
}  // namespace strata::train

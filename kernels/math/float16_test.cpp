#include "kernels/math/float16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/testing/float16_test_support.h"

namespace strata::kernels {
namespace {

/// Returns `value` rounded to `digits` binary digits with least exponent `least`, ties to even or
/// away from zero, by arithmetic in double; infinity beyond `largest`.
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

TEST(PackedMaster, IsTheMasterForEveryNumber) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower : {0u, 1u, 0x1234u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto master = std::bit_cast<float>(upper << 16 | lower);
      const float back = master_from_parts(master_to_bf16(master), master_remainder(master));
      if (std::isnan(master))
        ASSERT_EQ(std::bit_cast<std::uint32_t>(back), (upper | 0x40) << 16);
      else
        ASSERT_EQ(std::bit_cast<std::uint32_t>(back), upper << 16 | lower);
    }
}

}  // namespace
}  // namespace strata::kernels

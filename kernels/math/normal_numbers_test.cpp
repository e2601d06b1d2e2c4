#include "kernels/math/normal_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strata::kernels {
namespace {

/// Expects at most 1 unit in the last place from the exact value, which 80-bit numbers give to
/// 1/2048 of a unit.
void expect_log(double x) {
  const long double exact = std::log(static_cast<long double>(x));
  const double size = std::fabs(static_cast<double>(exact));
  const long double unit = std::nextafter(size, INFINITY) - size;
  EXPECT_LE(std::fabs(plain_log(x) - exact), unit) << x;
}

TEST(PlainLog, IsWithinOneUnitInTheLastPlace) {
  const RandomSource source(3, 0, 0, 0);
  for (std::uint64_t block = 0; block < 100'000; ++block) {
    const PhiloxBlock words = source.words(block);
    expect_log((words[0] + 0.5) * 0x1p-32);
    expect_log(std::ldexp(1 + words[1] * 0x1p-32, static_cast<int>(words[2] % 2000) - 1000));
  }
}

TEST(PlainLog, KeepsItsAccuracyNextToOne) {
  for (int n = 1; n <= 52; ++n) {
    expect_log(1 - std::ldexp(1.0, -n));
    expect_log(1 + std::ldexp(1.0, -n));
  }
  EXPECT_EQ(plain_log(1), 0);
}

// Each bound is five deviations of what a million independent normal numbers give.
TEST(NormalNumbers, HaveTheMomentsOfTheNormalDistribution) {
  constexpr std::uint64_t kBlocks = 250'000;
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  double before = 0;
  const RandomSource source(5, 0, 7, 0);
  for (std::uint64_t block = 0; block < kBlocks; ++block)
    for (const double x : normal_numbers(source.words(block)).v) {
      mean += x;
      square += x * x;
      fourth += x * x * x * x;
      neighbours += x * before;
      before = x;
    }
  constexpr double kCount = 4.0 * kBlocks;
  EXPECT_NEAR(mean / kCount, 0, 5e-3);
  EXPECT_NEAR(square / kCount, 1, 5e-3 * std::sqrt(2));
  EXPECT_NEAR(fourth / kCount, 3, 5e-3 * std::sqrt(96));
  EXPECT_NEAR(neighbours / kCount, 0, 5e-3);
}

TEST(NormalNumbers, AreFiniteForAllWords) {
  for (const std::uint32_t a : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu})
    for (const std::uint32_t b : {0u, 0x40000000u, 0x80000000u, 0xFFFFFFFFu})
      for (const double x : normal_numbers({a, b, b, a}).v) {
        EXPECT_TRUE(std::isfinite(x)) << a << ", " << b;
        EXPECT_LE(std::fabs(x), 6.8);
      }
}

}  // namespace
}  // namespace strata::kernels

#include "kernels/math/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace strata::kernels {
namespace {

/// Expects half a unit in the last place at most from the exact value, which 80-bit numbers give to
/// 1/2048 of a unit.
void expect_nearest(double found, long double exact, double argument) {
  const double size = std::fabs(found);
  const long double unit = std::nextafter(size, INFINITY) - size;
  EXPECT_LE(std::fabs(found - exact), 0.501L * unit) << argument;
}

TEST(PortableMath, CosIsTheNearestDoubleFromZeroToPi) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> any(0, std::numbers::pi);
  for (int i = 0; i < 20'000; ++i) {
    const double x = any(generator);
    expect_nearest(portable_cos(x), std::cos(static_cast<long double>(x)), x);
  }
  for (int i = 0; i <= 1000; ++i) {  // as schedules do
    const double x = std::numbers::pi * (i / 1000.0);
    expect_nearest(portable_cos(x), std::cos(static_cast<long double>(x)), x);
  }
  for (const double border : {std::numbers::pi / 4, std::numbers::pi / 2, std::numbers::pi * 0.75})
    for (const double x : {std::nextafter(border, 0), border, std::nextafter(border, 4)})
      expect_nearest(portable_cos(x), std::cos(static_cast<long double>(x)), x);
}

TEST(PortableMath, CosIsExactAtItsEnds) {
  EXPECT_EQ(portable_cos(0), 1);
  EXPECT_EQ(portable_cos(1e-300), 1);
  EXPECT_EQ(portable_cos(std::numbers::pi), -1);
  EXPECT_EQ(portable_cos(std::numbers::pi / 2), 6.123233995736766e-17);
}

TEST(PortableMath, LogIsTheNearestDouble) {
  for (int n = 2; n < 20'000; ++n)
    expect_nearest(portable_log(n), std::log(static_cast<long double>(n)), n);
  std::mt19937_64 generator(2);
  for (int i = 0; i < 20'000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(generator() >> 12) * 0x1p-52,
                                static_cast<int>(generator() % 200) - 100);
    expect_nearest(portable_log(x), std::log(static_cast<long double>(x)), x);
  }
  expect_nearest(portable_log(1 + 0x1p-52), std::log1p(0x1p-52L), 1 + 0x1p-52);
  EXPECT_EQ(portable_log(1), 0);
}

}  // namespace
}  // namespace strata::kernels

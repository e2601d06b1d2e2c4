#include "kernels/math/sine_cosine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace strata::kernels {
namespace {

/// Returns the distance in units of the last place of `exact` in double.
long double units(double value, long double exact) {
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  return std::fabs(value - exact) / std::ldexp(1.0L, exponent - 53);
}

void expect_exact(double x) {
  const SineCosine of = sine_cosine(x);
  const auto wide = static_cast<long double>(x);
  EXPECT_LE(units(of.sine, std::sin(wide)), 0.8L) << x;
  EXPECT_LE(units(of.cosine, std::cos(wide)), 0.8L) << x;
}

TEST(SineCosine, IsRoundedLittleMoreThanOnce) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(-30, 23), sign(-1, 1);
  for (int i = 0; i < 200'000; ++i)
    expect_exact(std::copysign(std::exp2(exponent(random)), sign(random)));
  for (int position = 0; position < 20'000; ++position) expect_exact(position);
}

// Next to zeros, the result is nothing but the rounding error of x.
TEST(SineCosine, KeepsItsAccuracyNextToZeros) {
  for (int n = 1; n <= 20'000; ++n)
    for (const double x : {n * std::numbers::pi / 2, std::nextafter(n * std::numbers::pi / 2, 0)})
      expect_exact(x);
}

TEST(SineCosine, KnowsZero) {
  EXPECT_EQ(sine_cosine(0).sine, 0);
  EXPECT_EQ(sine_cosine(0).cosine, 1);
}

}  // namespace
}  // namespace strata::kernels

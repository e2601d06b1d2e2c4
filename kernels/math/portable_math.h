// cos and log made of correctly rounded operations alone: the same bits on every machine, with
// every library, on host and device. They are for numbers that steer a step, not for tensors.
//
// Results are computed to about 2^-75 with pairs of doubles and rounded once, so they are the
// doubles nearest to the true values, except for one argument in millions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/math/host_device.h"

namespace strata::kernels {
namespace portable {

/// The number high + low, with |low| at most half a unit in the last place of high.
struct Pair {
  double high = 0, low = 0;
};

/// a + b exactly (Knuth).
STRATA_HOST_DEVICE inline Pair sum_of(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a * b exactly.
STRATA_HOST_DEVICE inline Pair product_of(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

STRATA_HOST_DEVICE inline Pair operator-(Pair a) { return {-a.high, -a.low}; }

STRATA_HOST_DEVICE inline Pair operator+(Pair a, Pair b) {
  const Pair high = sum_of(a.high, b.high), low = sum_of(a.low, b.low);
  const Pair sum = sum_of(high.high, high.low + low.high);
  return sum_of(sum.high, sum.low + low.low);
}

STRATA_HOST_DEVICE inline Pair operator*(Pair a, Pair b) {
  const Pair product = product_of(a.high, b.high);
  return sum_of(product.high, product.low + (a.high * b.low + a.low * b.high));
}

STRATA_HOST_DEVICE inline Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  const Pair rest = a + -(Pair{first} * b);
  return sum_of(first, rest.high / b.high);
}

// Number of a series' first terms that need pairs; the others are small enough for doubles.
inline constexpr int kPairTerms = 5;

/// Returns 1 - y^2 / d(1) (1 - y^2 / d(2) (...)) with d(n) = 2 n (2 n + offset), |y| <= pi / 4: cos
/// y for offset -1, sin y / y for offset 1.
STRATA_HOST_DEVICE inline Pair nested_series(Pair y, int offset) {
  constexpr int kTerms = 12;
  const Pair square = y * y;
  double small = 1;
  for (int n = kTerms; n > kPairTerms; --n)
    small = 1 - square.high / (2 * n * (2 * n + offset)) * small;
  Pair series{small};
  for (int n = kPairTerms; n > 0; --n)
    series = Pair{1} + -(square * series / Pair{static_cast<double>(2 * n * (2 * n + offset))});
  return series;
}

}  // namespace portable

/// Returns cos(x) for x in [0, pi].
STRATA_HOST_DEVICE inline double portable_cos(double x) {
  using portable::Pair;
  // pi / 2 to 160 bits.
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  constexpr double kHalfPiRest = 0x1.1a62633145c07p-54, kHalfPiLast = -0x1.f1976b7ed8fbcp-110;
  const int quadrant = x < kHalfPi / 2 ? 0 : x < kHalfPi * 1.5 ? 1 : 2;
  const double turns = quadrant;  // 0, 1 or 2: the products are exact
  const Pair y =
      portable::sum_of(x, -turns * kHalfPi) + Pair{-turns * kHalfPiRest, -turns * kHalfPiLast};
  if (quadrant == 1) return -(y * portable::nested_series(y, 1)).high;
  const double cosine = portable::nested_series(y, -1).high;
  return quadrant == 0 ? cosine : -cosine;
}

/// Returns the natural logarithm of a positive, normal number.
STRATA_HOST_DEVICE inline double portable_log(double x) {
  using portable::Pair;
  constexpr Pair kLog2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  constexpr int kTerms = 16, kMantissaBits = 52, kExponentBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  double scaled = std::bit_cast<double>(mantissa | std::bit_cast<std::uint64_t>(1.0));
  if (scaled > 1.4142135623730951) {
    scaled /= 2;
    ++exponent;
  }
  // log m = 2 atanh((m - 1) / (m + 1)) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...)
  const Pair s = Pair{scaled - 1} / portable::sum_of(scaled, 1);
  const Pair square = s * s;
  double small = 0;
  for (int n = kTerms; n > portable::kPairTerms; --n)
    small = 1.0 / (2 * n + 1) + square.high * small;
  Pair series{small};
  for (int n = portable::kPairTerms; n >= 0; --n)
    series = Pair{1} / Pair{static_cast<double>(2 * n + 1)} + square * series;
  return (Pair{static_cast<double>(exponent)} * kLog2 + Pair{2} * s * series).high;
}

}  // namespace strata::kernels

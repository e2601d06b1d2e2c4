// Makes normal random numbers of random words, with the same bits on every machine and backend. The
// logarithm, sine and cosine of libraries would differ from one another in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/math/host_device.h"
#include "kernels/math/philox.h"
#include "kernels/math/sine_cosine.h"

namespace strata::kernels {

/// Returns the natural logarithm of a positive, normal number within 1 unit in the last place, by
/// additions, multiplications and one division.
STRATA_HOST_DEVICE inline double plain_log(double x) {
  // x = 2^k m, sqrt(1/2) < m <= sqrt(2). The upper piece of log 2 has 32 bits: k times it is exact.
  constexpr double kLog2Piece1 = 0x1.62e42feep-1, kLog2Piece2 = 0x1.a39ef35793c76p-33;
  constexpr int kMantissaBits = 52, kExponentBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  double m = std::bit_cast<double>(mantissa | std::bit_cast<std::uint64_t>(1.0));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s) with s = f / (2 + f), f = m - 1: f - f^2 / 2 + s (f^2 / 2 + series), whose
  // leading terms are exact. The series is 2/3 s^2 + 2/5 s^4 + ...; what is left out is below
  // 2^-60.
  const double f = m - 1, s = f / (2 + f), z = s * s;
  double series = 2.0 / 23;
  series = series * z + 2.0 / 21;
  series = series * z + 2.0 / 19;
  series = series * z + 2.0 / 17;
  series = series * z + 2.0 / 15;
  series = series * z + 2.0 / 13;
  series = series * z + 2.0 / 11;
  series = series * z + 2.0 / 9;
  series = series * z + 2.0 / 7;
  series = series * z + 2.0 / 5;
  series = series * z + 2.0 / 3;
  const double half_square = 0.5 * f * f, k = exponent;
  const double small = s * (half_square + z * series) + k * kLog2Piece2;
  return k * kLog2Piece1 - ((half_square - small) - f);
}

/// Four independent standard normal numbers by Box-Muller (doi 10.1214/aoms/1177706645).
struct NormalBlock {
  double v[4];
};

STRATA_HOST_DEVICE inline NormalBlock normal_numbers(const PhiloxBlock& words) {
  NormalBlock block{};
  for (int pair = 0; pair < 2; ++pair) {
    const std::uint32_t a = pair == 0 ? words[0] : words[2], b = pair == 0 ? words[1] : words[3];
    const double radius = std::sqrt(-2.0 * plain_log((a + 0.5) * 0x1p-32));
    const SineCosine angle = sine_cosine(2.0 * std::numbers::pi * (b * 0x1p-32));
    block.v[2 * pair] = radius * angle.cosine;
    block.v[2 * pair + 1] = radius * angle.sine;
  }
  return block;
}

}  // namespace strata::kernels

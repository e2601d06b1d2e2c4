// Sine and cosine in fp64 by additions and multiplications alone, so that they have the same bits
// on every backend. Those of libraries differ from one another in the last place.
#pragma once

#include <cstdint>

namespace strata::kernels {

struct SineCosine {
  double sine, cosine;
};

/// value + lost is a - b (Knuth).
struct ExactDifference {
  double value, lost;
};
constexpr ExactDifference exact_difference(double a, double b) {
  const double value = a - b, back = a - value;
  return {value, (a - (value + back)) + (back - b)};
}

/// Returns both for |x| <= 2^23, each within 0.8 units in the last place.
constexpr SineCosine sine_cosine(double x) {
  // x = n pi / 2 + r with |r| <= pi / 4. The pieces of pi / 2 have 30 bits, so that n times each is
  // exact; adding and taking away 1.5 * 2^52 rounds to the nearest whole number.
  constexpr double kPiece1 = 0x1.921fb54p+0, kPiece2 = 0x1.10b46118p-30, kPiece3 = 0x1.313198ap-61,
                   kPiece4 = 0x1.701b839a25205p-92;
  const double n = x * 0x1.45f306dc9c883p-1 + 0x1.8p52 - 0x1.8p52;
  const double first = x - n * kPiece1;  // exact: the two are close
  const ExactDifference second = exact_difference(first, n * kPiece2);
  const ExactDifference third = exact_difference(second.value, n * kPiece3);
  const double low = second.lost + third.lost - n * kPiece4;
  const double r = third.value + low;
  const double tail = (third.value - r) + low;

  // Taylor's series; what is left out is below 2^-58 of the result.
  const double z = r * r;
  double s = 1.0 / 355687428096000;
  s = s * z - 1.0 / 1307674368000;
  s = s * z + 1.0 / 6227020800;
  s = s * z - 1.0 / 39916800;
  s = s * z + 1.0 / 362880;
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120;
  s = s * z - 1.0 / 6;
  double c = 1.0 / 20922789888000;
  c = c * z - 1.0 / 87178291200;
  c = c * z + 1.0 / 479001600;
  c = c * z - 1.0 / 3628800;
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720;
  c = c * z + 1.0 / 24;
  const double half = 0.5 * z;
  const double sine = r + (r * z * s + tail * (1 - half));
  const double rest = 1 - half;  // its rounding error is added back with the small terms
  const double cosine = rest + (((1 - rest) - half) + (z * z * c - r * tail));

  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace strata::kernels

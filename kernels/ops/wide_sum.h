// An exact sum of doubles in fixed point, so that neither order nor grouping nor the number of
// ranks can change it (Kulisch's long accumulator, kept as digits that an integer all-reduce can
// add). For host and device.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/math/host_device.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// Digit i counts units of 2^(32 i - 1088): the digits cover every finite double. Adding puts less
/// than 2^32 into a digit, so 2^31 additions, over all ranks together, fit without carrying; at one
/// addition per 1,024 elements that is a model of 2 * 10^12 parameters. Sums are kept without
/// carrying, hence equal additions give equal digits in whatever order; `wide_value` carries.
using WideDigits = std::span<std::int64_t, AgreedWord::kDigits>;
using ConstWideDigits = std::span<const std::int64_t, AgreedWord::kDigits>;

inline constexpr int kWideLowestExponent = -1088;

/// The parts of a double, which are added to three neighbouring digits.
struct WideAddend {
  bool valid = false;  ///< false: NaN, infinite or negative, nothing to add
  int digit = 0;       ///< the one that part[0] is added to
  std::int64_t part[3] = {};
};

STRATA_HOST_DEVICE constexpr WideAddend wide_addend(double value) {
  constexpr int kMantissaBits = 52, kExponentMask = 0x7FF;
  constexpr int kExponentBias = 1075;  // value = mantissa * 2^(exponent - 1075)
  const auto bits = std::bit_cast<std::uint64_t>(value);
  int exponent = static_cast<int>(bits >> kMantissaBits) & kExponentMask;
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  if (exponent == kExponentMask || value < 0) return {};
  if (exponent == 0)
    exponent = 1;  // subnormal: no hidden bit
  else
    mantissa |= std::uint64_t{1} << kMantissaBits;
  const int position = exponent - kExponentBias - kWideLowestExponent;
  const int shift = position % 32;
  const std::uint64_t low = mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  return {true,
          position / 32,
          {static_cast<std::int64_t>(low & 0xFFFFFFFF), static_cast<std::int64_t>(low >> 32),
           static_cast<std::int64_t>(high)}};
}

/// Adds `value` exactly. Returns false and adds nothing if it is NaN, infinite or negative.
[[nodiscard]] STRATA_HOST_DEVICE constexpr bool wide_add(WideDigits digits, double value) {
  const WideAddend addend = wide_addend(value);
  if (!addend.valid) return false;
  for (int i = 0; i < 3; ++i) digits[static_cast<std::size_t>(addend.digit + i)] += addend.part[i];
  return true;
}

/// Returns the sum, rounded once to the nearest double (ties to even); infinity if it is too large.
[[nodiscard]] STRATA_HOST_DEVICE inline double wide_value(ConstWideDigits digits) {
  // The highest carried digit that is not zero, the two below it, and whether anything lies below
  // those.
  struct Lead {
    int digit = -1;
    std::uint64_t value[3] = {};
    bool rest = false;
  } lead;
  std::uint64_t below[2] = {};  // the digits under the current one
  bool rest = false;            // whether any digit under those is not zero
  std::int64_t above = 0;
  for (int i = 0; i < AgreedWord::kDigits; ++i) {
    const std::int64_t sum = digits[static_cast<std::size_t>(i)] + above;
    STRATA_CHECK_ANYWHERE(sum >= 0, "digit", i, "of the sum of squares overflowed");
    const auto digit = static_cast<std::uint64_t>(sum & 0xFFFFFFFF);
    above = sum >> 32;
    if (digit != 0) lead = {i, {digit, below[0], below[1]}, rest};
    rest = rest || below[1] != 0;
    below[1] = below[0];
    below[0] = digit;
  }
  STRATA_CHECK_ANYWHERE(above == 0, "the sum of squares overflowed");
  if (lead.digit < 0) return 0;

  // The leading 64 bits; whatever lies below them only matters as "not exactly this", in the last
  // bit.
  const int shift = std::countl_zero(static_cast<std::uint32_t>(lead.value[0]));
  std::uint64_t leading = ((lead.value[0] << 32) | lead.value[1]) << shift;
  leading |= (lead.value[2] << shift) >> 32;
  if (lead.rest || ((lead.value[2] << shift) & 0xFFFFFFFF) != 0) leading |= 1;
  // 64 bits to 53 rounds to nearest even; the scaling is exact (every sum is a multiple of
  // 2^-1074).
  return std::ldexp(static_cast<double>(leading),
                    32 * (lead.digit - 1) + kWideLowestExponent - shift);
}

}  // namespace strata::kernels

#include "kernels/wide_sum.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "core/check.h"

namespace strata::kernels {
namespace {

constexpr int kLowestExponent = -1088;
constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1075;  // value = mantissa * 2^(exponent - 1075)
constexpr int kExponentMask = 0x7FF;

using Carried = std::array<std::uint32_t, AgreedWord::kDigits>;

Carried carry(ConstWideDigits digits) {
  Carried carried{};
  std::int64_t above = 0;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const std::int64_t sum = digits[i] + above;
    STRATA_CHECK(sum >= 0, "digit", i, "of the sum of squares overflowed");
    carried[i] = static_cast<std::uint32_t>(sum & 0xFFFFFFFF);
    above = sum >> 32;
  }
  STRATA_CHECK(above == 0, "the sum of squares overflowed");
  return carried;
}

}  // namespace

bool wide_add(WideDigits digits, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  int exponent = static_cast<int>(bits >> kMantissaBits) & kExponentMask;
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  if (exponent == kExponentMask || value < 0) return false;
  if (exponent == 0)
    exponent = 1;  // subnormal: no hidden bit
  else
    mantissa |= std::uint64_t{1} << kMantissaBits;
  const int position = exponent - kExponentBias - kLowestExponent;
  const int shift = position % 32;
  const std::uint64_t low = mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  const auto digit = static_cast<std::size_t>(position / 32);
  digits[digit] += static_cast<std::int64_t>(low & 0xFFFFFFFF);
  digits[digit + 1] += static_cast<std::int64_t>(low >> 32);
  digits[digit + 2] += static_cast<std::int64_t>(high);
  return true;
}

double wide_value(ConstWideDigits digits) {
  const Carried carried = carry(digits);
  int top = static_cast<int>(carried.size()) - 1;
  while (top >= 0 && carried[static_cast<std::size_t>(top)] == 0) --top;
  if (top < 0) return 0;

  const auto digit = [&](int i) {
    return i < 0 ? std::uint64_t{0} : std::uint64_t{carried[static_cast<std::size_t>(i)]};
  };
  // The leading 64 bits; whatever lies below them only matters as "not exactly this", in the last
  // bit.
  const int lead = std::countl_zero(carried[static_cast<std::size_t>(top)]);
  std::uint64_t leading = ((digit(top) << 32) | digit(top - 1)) << lead;
  leading |= (digit(top - 2) << lead) >> 32;
  bool rest = ((digit(top - 2) << lead) & 0xFFFFFFFF) != 0;
  for (int i = top - 3; i >= 0 && !rest; --i) rest = digit(i) != 0;
  if (rest) leading |= 1;
  // 64 bits to 53 rounds to nearest even; the scaling is exact (every sum is a multiple of
  // 2^-1074).
  return std::ldexp(static_cast<double>(leading), 32 * (top - 1) + kLowestExponent - lead);
}

}  // namespace strata::kernels

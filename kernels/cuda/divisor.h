// Division of indices by a number that the host knows, by a product and a shift: a device needs
// about twenty instructions to divide.
#pragma once

#include <bit>
#include <cstdint>

namespace strata::cuda {

/// Divides numbers >= 0 by a divisor >= 1. It is fast for numbers below 2^31, and right for all.
class Divisor {
 public:
  struct Parts {
    std::int64_t quotient, remainder;
  };

  constexpr Divisor() = default;
  constexpr explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= kFast) {
      multiplier_ = 0;  // numbers below 2^31 are smaller than the divisor: their quotient is 0
      return;
    }
    // n * multiplier / 2^shift exceeds n / divisor by less than n / 2^31 / divisor, which is too
    // little to reach the next whole number.
    const auto d = static_cast<std::uint64_t>(divisor);
    shift_ = 31 + std::bit_width(d - 1);
    multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + d - 1) / d);
  }

  [[nodiscard]] constexpr Parts divide(std::int64_t n) const {
    if (n >= kFast) return {n / divisor_, n % divisor_};
    const auto small = static_cast<std::uint32_t>(n);
    const auto quotient =
        static_cast<std::uint32_t>((std::uint64_t{small} * multiplier_) >> shift_);
    return {quotient, small - quotient * static_cast<std::uint32_t>(divisor_)};
  }

 private:
  static constexpr std::int64_t kFast = std::int64_t{1} << 31;
  std::int64_t divisor_ = 1;
  std::uint32_t multiplier_ = std::uint32_t{1} << 31;
  int shift_ = 31;
};

}  // namespace strata::cuda

// Division of sizes that rounds up. Sizes are at least 0, divisors at least 1.
#pragma once

#include <cstdint>

namespace strata {

/// Returns how many parts of at most `part` make `whole`.
constexpr std::int64_t divide_up(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

/// Returns the least multiple of `unit` that is not below `n`.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return divide_up(n, unit) * unit;
}

}  // namespace strata

// Numbers at which conversions to 16 bits may go wrong.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace strata::kernels {

using Bits16 = std::vector<std::uint16_t>;

inline Bits16 all_patterns() {
  Bits16 patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  return patterns;
}

/// Returns every 16-bit number of a type with both neighbours in fp32, every midpoint between two
/// of them with its neighbours, and random bits: ties, subnormal numbers, overflow and NaN with all
/// kinds of payload.
inline std::vector<float> interesting(float (*decode)(std::uint16_t)) {
  std::vector<float> values;
  const auto with_neighbours = [&](std::uint32_t bits) {
    for (const std::uint32_t delta : {0xFFFFFFFFu, 0u, 1u})
      values.push_back(std::bit_cast<float>(bits + delta));
  };
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto here = std::bit_cast<std::uint32_t>(decode(static_cast<std::uint16_t>(pattern)));
    const auto next = std::bit_cast<std::uint32_t>(decode(static_cast<std::uint16_t>(pattern + 1)));
    with_neighbours(here);
    with_neighbours(static_cast<std::uint32_t>((std::uint64_t{here} + next) / 2));
    const double middle = (static_cast<double>(std::bit_cast<float>(here)) +
                           static_cast<double>(std::bit_cast<float>(next))) /
                          2;
    if (std::isfinite(middle))
      with_neighbours(std::bit_cast<std::uint32_t>(static_cast<float>(middle)));
  }
  std::mt19937 generator(5);
  for (int i = 0; i < 200000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));
  return values;
}

/// Returns `one` of each element.
template <typename To, typename From>
std::vector<To> mapped(const std::vector<From>& from, To (*one)(From)) {
  std::vector<To> to;
  for (From value : from) to.push_back(one(value));
  return to;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace strata::kernels

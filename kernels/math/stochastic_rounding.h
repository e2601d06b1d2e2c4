// The random bits by which optimizers round their 16-bit state: up or down at random, so that it is
// right on average. To nearest, a change of less than 2^-9 of a number would be lost every time.
//
// An element's bits come from one word, at its position in its unit, of RandomSource(seed, step,
// kStochasticSample, key of the unit). So they depend on seed, step and the element's place, not on
// who owns it.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// No sample of a data set: dropout never draws these numbers.
inline constexpr std::int64_t kStochasticSample = -1;

/// Sixteen random bits each for the parameter and the moments. Each of them is uniform; bits for v
/// are a hash of those for the others.
struct StochasticBits {
  std::uint32_t parameter, m, v;
};

inline constexpr std::uint32_t kStochasticHash = 0x9E3779B1u;

constexpr StochasticBits stochastic_bits(std::uint32_t word) {
  return {word >> 16, word & 0xFFFF, (word * kStochasticHash) >> 16};
}

}  // namespace strata::kernels

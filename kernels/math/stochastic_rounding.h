// The random bits with which optimizers round their 16-bit state up or down, so that it is right on
// average. Rounding to nearest would lose a change of less than 2^-9 of a number every time.
//
// An element's bits come from one word of RandomSource(seed, step, kStochasticSample, key of the
// unit), the one at its position in its unit. So they depend on seed, step and the element's place,
// not on the rank that owns it.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// The sample number of these words. No sample of a data set has it, so dropout never draws them.
inline constexpr std::int64_t kStochasticSample = -1;

/// Sixteen random bits each for the parameter and the moments, uniform for each of them; the bits
/// for v are a hash of those for the others.
struct StochasticBits {
  std::uint32_t parameter, m, v;
};

inline constexpr std::uint32_t kStochasticHash = 0x9E3779B1u;

constexpr StochasticBits stochastic_bits(std::uint32_t word) {
  return {word >> 16, word & 0xFFFF, (word * kStochasticHash) >> 16};
}

}  // namespace strata::kernels

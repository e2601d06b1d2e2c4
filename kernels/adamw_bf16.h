// AdamW and Adam without a master copy: parameter and moments are bf16, 6 bytes per element in all.
//
// inputs   parameter bf16 [n], m bf16 [n], v bf16 [n], gradient bf16 or fp32 [n], control u8
//          [sizeof(StepControl)], rng i64 [2 or more]: seed, step
// attributes  beta1, beta2, eps, weight_decay, decoupled as in adamw.h; key: of the unit that the
//             range is a part of; first (default 0): where in the unit's flat space the range
//             starts
// outputs  parameter, m, v (each in place)
//
// The arithmetic is that of adamw.h, in fp32. Then each of the three is rounded up or down at
// random, so that it is right on average: to nearest, a step of less than 2^-9 of a parameter would
// leave it where it is for ever. Moments enter the step before they are rounded.
//
// The random numbers of element i are made of one word, that of position first + i in
// RandomSource(seed, step, kStochasticSample, key): so they depend on seed, step and the element's
// place in its unit, and not on who owns it. Steps run it under the predicate control.apply.
#pragma once

#include <cstdint>

#include "kernels/operation.h"

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

const Operation& adamw_bf16_operation();

}  // namespace strata::kernels

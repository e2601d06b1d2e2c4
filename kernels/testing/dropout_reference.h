// Dropout in fp64, directly from the definition of the random numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/math/philox.h"

namespace strata::kernels::reference {

/// Returns 0 or 1 / (1 - p) for each element of [N, columns].
inline std::vector<double> dropout_factors(const std::vector<std::int64_t>& rng, std::size_t rows,
                                           std::size_t columns, std::size_t sequence,
                                           std::int64_t key, double p) {
  std::vector<double> factors;
  for (std::size_t n = 0; n < rows; ++n) {
    const RandomSource source(rng[0], rng[1], rng[2 + n / sequence], key);
    for (std::size_t c = 0; c < columns; ++c) {
      const double word = source.word(n % sequence * columns + c);
      factors.push_back(word >= p * 0x1p32 ? 1 / (1 - p) : 0.0);
    }
  }
  return factors;
}

}  // namespace strata::kernels::reference

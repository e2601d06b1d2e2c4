// Softmax over rows that come in pieces, vectorized.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// A piece of a row: its largest value and the sum of e^(value - largest). For an empty piece
/// -infinity and 0.
struct SoftmaxPiece {
  float largest;
  float sum;
};

/// Replaces values[i] by e^(values[i] - largest) for i in [0, valid), by 0 for i in [valid, count).
/// Sixteen partial sums whatever the vector width.
SoftmaxPiece exponentiate(float* values, std::int64_t count, std::int64_t valid);

/// values[i] *= factor.
void scale_row(float* values, float factor, std::int64_t count);

}  // namespace strata::kernels

// Softmax over rows that come in pieces, vectorized.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// A piece of a row: its largest value and the sum of e^(value - largest); -infinity and 0 if the
/// piece is empty.
struct SoftmaxPiece {
  float largest;
  float sum;
};

/// Replaces values[i] by e^(values[i] - largest) for i in [0, valid), by 0 for i in [valid, count).
/// The sum has sixteen partial sums whatever the vector width.
SoftmaxPiece exponentiate(float* values, std::int64_t count, std::int64_t valid);

void scale_row(float* values, float factor, std::int64_t count);

}  // namespace strata::kernels

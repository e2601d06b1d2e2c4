// The cut of linear_backward_bias's rows into segments, for its kernel and for planning.
#pragma once

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The rows that one block adds up: 8k rows of 768 columns already give enough blocks for a GPU.
inline constexpr std::int64_t kSegmentRows = 128;

constexpr std::int64_t column_segments(std::int64_t rows) {
  return (rows + kSegmentRows - 1) / kSegmentRows;
}

/// The bytes of scratch for the column sums of `matrix`: fp32 [segments, cols].
inline std::int64_t column_sums_bytes(const kernels::TensorType& matrix) {
  return column_segments(matrix.shape.rows()) * matrix.shape.cols() * 4;
}

}  // namespace strata::cuda

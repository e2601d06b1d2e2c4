// The cut of linear_backward_bias's rows into strips, for its kernel and for planning.
#pragma once

#include "core/round_up.h"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The rows that one block adds up: 8k rows of 768 columns already give enough blocks for a GPU.
inline constexpr std::int64_t kStripRows = 128;

constexpr std::int64_t column_strips(std::int64_t rows) { return divide_up(rows, kStripRows); }

/// The bytes of scratch for the column sums of `matrix`: fp32 [strips, cols].
inline std::int64_t column_sums_bytes(const kernels::TensorType& matrix) {
  return column_strips(matrix.shape.rows()) * matrix.shape.cols() * 4;
}

}  // namespace strata::cuda

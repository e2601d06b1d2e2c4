// Vectorized additions of a row to a row, and of all rows of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/tensor.h"

namespace strata::kernels {

/// to[i] += from[i] for i in [0, count).
void add_row(const float* from, float* to, std::int64_t count);

/// Sets sums[i] to the sum of column `first + i` of `matrix` (fp32, bf16 or fp16), i in [0, count),
/// count <= kColumnBlock: fp32 sums of 32 rows are added in order in fp64 and rounded once.
inline constexpr std::int64_t kColumnBlock = 256;
void sum_columns(const Tensor& matrix, std::int64_t first, std::int64_t count, float* sums);

}  // namespace strata::kernels

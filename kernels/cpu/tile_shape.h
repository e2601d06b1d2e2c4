// The shape of the product of one tile.
#pragma once

#include <compare>
#include <cstdint>

#include "core/dtype.h"

namespace strata::kernels {

/// C[m,n] = op(A)[m,k] op(B)[k,n], added to C if `accumulate`. All are row-major with strides in
/// elements: a transposed A is stored [k,m], a transposed B [n,k]. C is fp32.
struct TileShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a_dtype = DType::f32;
  DType b_dtype = DType::f32;
  bool a_transposed = false;
  bool b_transposed = false;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  bool accumulate = false;

  auto operator<=>(const TileShape&) const = default;
};

}  // namespace strata::kernels

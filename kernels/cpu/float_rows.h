// Views rows of fp32, bf16 or fp16 as fp32, for kernels that compute on fp32 rows only. fp32 rows
// are used in place; the others go through a buffer that stays in the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/cpu/convert.h"
#include "kernels/device/tensor.h"

namespace strata::kernels {

/// Loads n elements of `type` as fp32, exactly.
inline void load_floats(const std::byte* from, DType type, float* to, std::int64_t n) {
  convert_range(type, from, DType::f32, reinterpret_cast<std::byte*>(to), n);
}

/// Stores n fp32 numbers as elements of `type`, rounded to nearest even.
inline void store_floats(const float* from, std::byte* to, DType type, std::int64_t n) {
  convert_range(DType::f32, reinterpret_cast<const std::byte*>(from), type, to, n);
}

/// Returns elements [column, column + n) of row r: in place if fp32, else converted in `buffer`.
inline const float* floats_of(const Tensor& tensor, std::int64_t r, std::int64_t column,
                              std::int64_t n, float* buffer) {
  std::byte* at = tensor.data + (r * tensor.row_stride() + column) * size_of(tensor.dtype());
  if (tensor.dtype() == DType::f32) return reinterpret_cast<const float*>(at);
  load_floats(at, tensor.dtype(), buffer, n);
  return buffer;
}

/// Returns where to write elements [column, ...) of row r: in place if they are fp32, else in
/// `buffer`, which put_floats() then stores.
inline float* floats_for(const Tensor& tensor, std::int64_t r, std::int64_t column, float* buffer) {
  if (tensor.dtype() != DType::f32) return buffer;
  return tensor.row<float>(r) + column;
}

/// Completes floats_for(): `values` is what it returned.
inline void put_floats(const float* values, const Tensor& tensor, std::int64_t r,
                       std::int64_t column, std::int64_t n) {
  if (tensor.dtype() == DType::f32) return;
  std::byte* at = tensor.data + (r * tensor.row_stride() + column) * size_of(tensor.dtype());
  store_floats(values, at, tensor.dtype(), n);
}

}  // namespace strata::kernels

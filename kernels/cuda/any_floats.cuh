// Tensors whose float type a kernel learns when it runs: weights and gradients, which may differ in
// type from the activations. This avoids an instance of the kernel for each pair of types. All
// threads take the same branch.
#pragma once

#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/device/tensor.h"

namespace strata::cuda {

struct AnyFloats {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;  ///< elements between rows
};

inline AnyFloats any_floats(const kernels::Tensor& tensor) {
  return {tensor.data, tensor.dtype(), tensor.row_stride()};
}

/// Host: true if a vector, or each row of a matrix, is whole packs of `elements`, and each pack (or
/// each 16 bytes of a larger one) is aligned.
inline bool any_packs_fit(int elements, const kernels::Tensor& tensor) {
  const bool vector = tensor.type.shape.ndim() < 2;
  const std::int64_t size = size_of(tensor.dtype());
  const std::int64_t bytes = std::min<std::int64_t>(16, elements * size);
  const bool rows_fit = vector || tensor.rows() <= 1 || tensor.row_stride() * size % bytes == 0;
  return (vector ? tensor.elements() : tensor.cols()) % elements == 0 && rows_fit &&
         reinterpret_cast<std::uintptr_t>(tensor.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

template <int N, typename T>
STRATA_DEVICE void read_as(float (&to)[N], const T* from) {
  constexpr int kPack = std::min(N, static_cast<int>(16 / sizeof(T)));
#pragma unroll
  for (int i = 0; i < N; i += kPack) {
    float part[kPack];
    to_floats(part, load<kPack>(from + i));
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[i + j] = part[j];
  }
}

template <int N, typename T>
STRATA_DEVICE void write_as(T* to, const float (&from)[N]) {
  constexpr int kPack = std::min(N, static_cast<int>(16 / sizeof(T)));
#pragma unroll
  for (int i = 0; i < N; i += kPack) {
    float part[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) part[j] = from[i + j];
    store<kPack>(to + i, to_pack<T>(part));
  }
}

/// Reads N elements from element `at` on.
template <int N>
STRATA_DEVICE void read_floats(float (&to)[N], const AnyFloats& from, std::int64_t at) {
  if (from.dtype == DType::f32)
    read_as(to, reinterpret_cast<const float*>(from.data) + at);
  else if (from.dtype == DType::bf16)
    read_as(to, reinterpret_cast<const Bf16*>(from.data) + at);
  else
    read_as(to, reinterpret_cast<const Half*>(from.data) + at);
}

/// Writes N elements from element `at` on, each rounded once.
template <int N>
STRATA_DEVICE void write_floats(const AnyFloats& to, std::int64_t at, const float (&from)[N]) {
  if (to.dtype == DType::f32)
    write_as(reinterpret_cast<float*>(to.data) + at, from);
  else if (to.dtype == DType::bf16)
    write_as(reinterpret_cast<Bf16*>(to.data) + at, from);
  else
    write_as(reinterpret_cast<Half*>(to.data) + at, from);
}

}  // namespace strata::cuda

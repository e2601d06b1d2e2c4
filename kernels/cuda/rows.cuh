// Element-wise kernels over tensors whose rows may lie apart: who takes which elements, in packs as
// wide as alignment allows.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda/element.cuh"
#include "kernels/tensor.h"

namespace strata::cuda {

/// The common shape of an element-wise kernel's operands. Contiguous operands are one long row.
struct RowShape {
  std::int64_t rows = 0, cols = 0;
};

/// One operand: element (r, c) is at data + r * stride + c.
template <typename T>
struct RowPointer {
  T* data = nullptr;
  std::int64_t stride = 0;
};

template <typename T>
RowPointer<T> rows_of(const kernels::Tensor& tensor) {
  return {reinterpret_cast<T*>(tensor.data), tensor.row_stride()};
}

inline RowShape row_shape(std::initializer_list<const kernels::Tensor*> operands) {
  const kernels::Tensor& first = **operands.begin();
  const bool flat = std::all_of(operands.begin(), operands.end(),
                                [](const kernels::Tensor* t) { return t->type.contiguous(); });
  if (flat) return {1, first.elements()};
  return {first.rows(), first.cols()};
}

/// True when every row of every operand starts at a multiple of `elements` elements and is whole
/// packs long, so that packs of that many may be moved.
inline bool packs_fit(int elements, std::initializer_list<const kernels::Tensor*> operands) {
  const RowShape shape = row_shape(operands);
  if (shape.cols % elements != 0) return false;
  return std::all_of(operands.begin(), operands.end(), [&](const kernels::Tensor* t) {
    const std::int64_t bytes = elements * size_of(t->dtype());
    return reinterpret_cast<std::uintptr_t>(t->data) % static_cast<std::uintptr_t>(bytes) == 0 &&
           (shape.rows == 1 || t->row_stride() % elements == 0);
  });
}

/// Elements that one thread moves at once when the widest element has `bytes`: 16 bytes of it.
constexpr int pack_elements(std::size_t bytes) { return static_cast<int>(16 / bytes); }

inline constexpr int kElementwiseThreads = 256;

/// Blocks for `packs` packs, one per thread; grids stay one-dimensional.
inline LaunchShape elementwise_launch(std::int64_t packs) {
  return {
      {static_cast<std::uint32_t>((packs + kElementwiseThreads - 1) / kElementwiseThreads), 1, 1},
      0};
}

/// Where this thread's pack begins; false beyond the last.
template <int N>
STRATA_DEVICE bool my_pack(const RowShape& shape, std::int64_t& row, std::int64_t& col) {
  const std::int64_t index = std::int64_t{block().x} * kElementwiseThreads + thread();
  const std::int64_t per_row = shape.cols / N;
  if (index >= shape.rows * per_row) return false;
  row = shape.rows == 1 ? 0 : index / per_row;
  col = (index - row * per_row) * N;
  return true;
}

template <int N, typename T>
STRATA_DEVICE void load_floats(float (&to)[N], const RowPointer<T>& from, std::int64_t row,
                               std::int64_t col) {
  const auto pack = load<N>(from.data + row * from.stride + col);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = to_float(pack.v[i]);
}

template <int N, typename T>
STRATA_DEVICE void store_floats(const RowPointer<T>& to, std::int64_t row, std::int64_t col,
                                const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = from_float<T>(from[i]);
  store<N>(to.data + row * to.stride + col, pack);
}

}  // namespace strata::cuda

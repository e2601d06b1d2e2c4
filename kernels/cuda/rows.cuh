// Operands of element-wise kernels, whose rows may have gaps, and the check if packs can be moved.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda/element.cuh"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The common shape of an element-wise kernel's operands, one row if all are contiguous.
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

/// True if in every operand each row is whole, aligned packs of `elements`. `shape` is the shape in
/// which a kernel sees the operands.
inline bool packs_fit(int elements, const RowShape& shape,
                      std::initializer_list<const kernels::Tensor*> operands) {
  if (shape.cols % elements != 0) return false;
  return std::all_of(operands.begin(), operands.end(), [&](const kernels::Tensor* t) {
    const std::int64_t bytes = elements * size_of(t->dtype());
    return reinterpret_cast<std::uintptr_t>(t->data) % static_cast<std::uintptr_t>(bytes) == 0 &&
           (shape.rows == 1 || t->row_stride() % elements == 0);
  });
}

inline bool packs_fit(int elements, std::initializer_list<const kernels::Tensor*> operands) {
  return packs_fit(elements, row_shape(operands), operands);
}

/// The number of elements of `bytes` in a pack of 16 bytes.
constexpr int pack_elements(std::size_t bytes) { return static_cast<int>(16 / bytes); }

template <int N, typename T>
STRATA_DEVICE void store_floats(const RowPointer<T>& to, std::int64_t row, std::int64_t col,
                                const float (&from)[N]) {
  store<N>(to.data + row * to.stride + col, to_pack<T>(from));
}

}  // namespace strata::cuda

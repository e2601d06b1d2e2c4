// Types and views of tensors. A view does not own its memory, which belongs to an arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/check.h"
#include "core/dtype.h"

namespace strata::kernels {

/// Up to four extents, outermost first. Each row (an index of the first dimension) is contiguous.
class Shape {
 public:
  static constexpr int kMaxDimensions = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    STRATA_CHECK(extents.size() <= kMaxDimensions);
    for (std::int64_t extent : extents) extents_[ndim_++] = extent;
  }

  [[nodiscard]] int ndim() const { return ndim_; }
  [[nodiscard]] std::int64_t operator[](int i) const { return extents_[i]; }
  /// First extent (1 for a scalar).
  [[nodiscard]] std::int64_t rows() const { return ndim_ == 0 ? 1 : extents_[0]; }
  /// Elements of one row: the product of all extents but the first.
  [[nodiscard]] std::int64_t cols() const {
    std::int64_t n = 1;
    for (int i = 1; i < ndim_; ++i) n *= extents_[i];
    return n;
  }
  [[nodiscard]] std::int64_t elements() const { return rows() * cols(); }
  bool operator==(const Shape&) const = default;
  /// "[4, 768]"
  [[nodiscard]] std::string to_string() const;

 private:
  std::array<std::int64_t, kMaxDimensions> extents_{};
  int ndim_ = 0;
};

/// The type of a value. `row_stride` is the distance between starts of rows in elements, >= cols.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t row_stride = 0;

  TensorType() = default;
  TensorType(DType d, Shape s) : dtype(d), shape(s), row_stride(s.cols()) {}
  TensorType(DType d, Shape s, std::int64_t stride) : dtype(d), shape(s), row_stride(stride) {}

  [[nodiscard]] bool contiguous() const { return row_stride == shape.cols() || shape.rows() <= 1; }
  /// Bytes from the first to the last element, gaps between rows included.
  [[nodiscard]] std::int64_t span_bytes() const {
    return shape.elements() == 0
               ? 0
               : ((shape.rows() - 1) * row_stride + shape.cols()) * size_of(dtype);
  }
  bool operator==(const TensorType&) const = default;
  /// "bf16[4, 768]" or "bf16[4, 768] stride 2304"
  [[nodiscard]] std::string to_string() const;
};

/// A typed view of memory: element (r, c) is at data + (r * row_stride + c) * size_of(dtype).
struct Tensor {
  TensorType type;
  std::byte* data = nullptr;

  [[nodiscard]] std::int64_t rows() const { return type.shape.rows(); }
  [[nodiscard]] std::int64_t cols() const { return type.shape.cols(); }
  [[nodiscard]] std::int64_t elements() const { return type.shape.elements(); }
  [[nodiscard]] std::int64_t row_stride() const { return type.row_stride; }
  [[nodiscard]] DType dtype() const { return type.dtype; }

  /// Typed pointer to row r; T must have the element's size.
  template <typename T>
  [[nodiscard]] T* row(std::int64_t r = 0) const {
    return reinterpret_cast<T*>(data) + r * type.row_stride;
  }
};

}  // namespace strata::kernels

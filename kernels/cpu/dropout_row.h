// Dropout of a piece of a row, shared by dropout, residual_add and residual_norm.
#pragma once

#include <cstdint>

#include "kernels/device/attributes.h"
#include "kernels/device/tensor.h"
#include "kernels/math/philox.h"

namespace strata::kernels {

/// The dropout of one call: the source of its random numbers, its threshold and its scale.
class DropoutRows {
 public:
  /// Makes one whose apply() may not be called.
  DropoutRows() = default;
  /// Takes attributes p, key and sequence; rows have `columns` elements.
  DropoutRows(const Tensor& rng, const Attributes& attributes, std::int64_t columns);

  /// Computes to[i] = x[i] + dropout(delta)[i] for columns [column, column + n) of `row`. x may be
  /// null (nothing is added) and `to` may be x or delta. n <= kRowPartElements.
  void apply(const float* x, const float* delta, float* to, std::int64_t row, std::int64_t column,
             std::int64_t n) const;

 private:
  const std::int64_t* rng_ = nullptr;
  std::int64_t columns_ = 0, sequence_ = 1, key_ = 0;
  std::uint32_t threshold_ = 0;
  float scale_ = 1;
};

}  // namespace strata::kernels

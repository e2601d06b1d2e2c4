// The matrix product that each operation of kernels/ops/linear.h is.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// C[M,N] = op(A) op(B). A transposed A is stored [K,M], a transposed B [N,K].
struct MatmulTypes {
  TensorType a;
  TensorType b;
  TensorType c;
  bool a_transposed = false;
  bool b_transposed = false;

  [[nodiscard]] std::int64_t m() const { return c.shape.rows(); }
  [[nodiscard]] std::int64_t n() const { return c.shape.cols(); }
  [[nodiscard]] std::int64_t k() const { return a_transposed ? a.shape.rows() : a.shape.cols(); }
};

MatmulTypes linear_types(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes);
MatmulTypes linear_backward_input_types(TypeSpan inputs, TypeSpan outputs,
                                        const Attributes& attributes);
MatmulTypes linear_backward_weight_types(TypeSpan inputs, TypeSpan outputs,
                                         const Attributes& attributes);

}  // namespace strata::kernels

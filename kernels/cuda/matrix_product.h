// How operations on CUDA multiply matrices: one function, whatever multiplies.
#pragma once

#include <span>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// C[M,N] = op(A) op(B) + bias, added to C when `accumulate`. A transposed A is stored [K,M], a
/// transposed B [N,K]. All are fp32, bf16 or fp16 in any mix, rows may lie apart, tensors of three
/// dimensions count as two. No extent is 0; C overlaps neither A nor B.
struct MatrixProduct {
  kernels::Tensor a;
  kernels::Tensor b;
  kernels::Tensor c;
  bool a_transposed = false;
  bool b_transposed = false;
  const kernels::Tensor* bias = nullptr;  ///< [N], added to every row; may be absent
  bool accumulate = false;

  [[nodiscard]] std::int64_t m() const { return c.rows(); }
  [[nodiscard]] std::int64_t n() const { return c.cols(); }
  [[nodiscard]] std::int64_t k() const { return a_transposed ? a.rows() : a.cols(); }
};

/// Enqueues the product on `stream`: by the stream's library where that has one and offers this
/// product, else by our own kernels. Sums, bias and what C held are added in fp32 and rounded once
/// to the type of C, in an order that depends on types, shapes, strides, alignment and the
/// library's algorithm alone. `workspace`: product_workspace_bytes of C (product_workspace.h),
/// overwritten.
void matrix_product(kernels::Stream& stream, const MatrixProduct& product,
                    std::span<std::byte> workspace);

/// The same by our own kernels (product.cu), which take every type, layout and alignment.
void tiled_product(kernels::Stream& stream, const MatrixProduct& product);

}  // namespace strata::cuda

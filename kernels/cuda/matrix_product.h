// The one function by which operations on CUDA multiply matrices.
#pragma once

#include <span>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The product op(A) op(B) + bias; it is added to C[M,N] if `accumulate`, else replaces it. A
/// transposed A is stored [K,M], a transposed B [N,K]. Types are fp32, bf16 or fp16 in any mix;
/// rows may have gaps; tensors of three dimensions count as two. No extent is 0; C overlaps no
/// operand.
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

/// Enqueues the product on `stream`: by the stream's library, if it has one that offers this
/// product, else by our own kernels. Sums, bias and C's old content are added in fp32 and rounded
/// once to the type of C, in an order that depends on types, shapes, strides, alignment and the
/// library's algorithm alone. `workspace` has product_workspace_bytes (product_workspace.h) and is
/// overwritten.
void matrix_product(kernels::Stream& stream, const MatrixProduct& product,
                    std::span<std::byte> workspace);

/// Enqueues the product by our own kernels (product.cu), which take all types, layouts, alignments.
void tiled_product(kernels::Stream& stream, const MatrixProduct& product);

}  // namespace strata::cuda

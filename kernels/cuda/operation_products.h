// The matrix products of linear.h and head_loss.h on CUDA. Both their kernels and Device::choose,
// which chooses algorithms beforehand, use these functions, so that the two agree.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/cuda/head_chunks.h"
#include "kernels/cuda/matrix_product.h"

namespace strata::cuda {

/// Describes the product of a call. Its bias points into `call.inputs`, which must outlive it.
/// Nothing here reads the operands' memory.
MatrixProduct linear_product(const kernels::KernelCall& call);
MatrixProduct linear_backward_input_product(const kernels::KernelCall& call);
MatrixProduct linear_backward_weight_product(const kernels::KernelCall& call);

/// One chunk of rows of head_loss or head_loss_eval, and its products.
struct HeadChunk {
  std::int64_t first = 0;  ///< the chunk's first row
  kernels::Tensor x, w;    ///< [rows, H], [V, H]
  kernels::Tensor logits;  ///< [rows, V] at the start of the workspace

  /// Makes chunk `i` of `chunks`, which are those of `call`.
  HeadChunk(const kernels::KernelCall& call, const HeadChunks& chunks, std::int64_t i);

  [[nodiscard]] MatrixProduct forward() const;
  /// Returns the product that makes dW, or adds to it from the second chunk on.
  [[nodiscard]] MatrixProduct weight_gradient(const kernels::Tensor& dw) const;
  /// Returns the product that makes this chunk's rows of dx.
  [[nodiscard]] MatrixProduct input_gradient(const kernels::Tensor& dx) const;
};

/// Returns all products of a call in the order in which it runs them; none for other operations.
std::vector<MatrixProduct> products_of(std::string_view operation, const kernels::KernelCall& call);

}  // namespace strata::cuda

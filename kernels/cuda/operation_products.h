// Which matrix products the CUDA kernels of linear.h and head_loss.h run. The kernels and whoever
// chooses algorithms beforehand read them here, so that the two agree.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/cuda/head_chunks.h"
#include "kernels/cuda/matrix_product.h"

namespace strata::cuda {

/// A product's bias points into `call.inputs`, which must outlive it. Nothing here reads memory:
/// addresses count by their alignment alone.
MatrixProduct linear_product(const kernels::KernelCall& call);
MatrixProduct linear_backward_input_product(const kernels::KernelCall& call);
MatrixProduct linear_backward_weight_product(const kernels::KernelCall& call);

/// One chunk of rows of head_loss or head_loss_eval, and its products.
struct HeadChunk {
  std::int64_t first = 0;  ///< row
  kernels::Tensor x, w;    ///< [rows, H], [V, H]
  kernels::Tensor logits;  ///< [rows, V] at the start of the workspace

  /// Chunk `i` of `chunks`, which are those of the call.
  HeadChunk(const kernels::KernelCall& call, const HeadChunks& chunks, std::int64_t i);

  [[nodiscard]] MatrixProduct forward() const;
  /// Into dW, added to what the chunks before gave.
  [[nodiscard]] MatrixProduct weight_gradient(const kernels::Tensor& dw) const;
  /// Into the rows of dx that belong to this chunk.
  [[nodiscard]] MatrixProduct input_gradient(const kernels::Tensor& dx) const;
};

/// All products of one call, in the order in which it runs them; none for other operations.
std::vector<MatrixProduct> products_of(std::string_view operation, const kernels::KernelCall& call);

}  // namespace strata::cuda

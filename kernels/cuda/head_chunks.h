// The cut of head_loss's rows and workspace on CUDA, which depends on shapes and types alone.
#pragma once

#include <cstdint>

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Rows are cut into equal chunks of at most 2,048 to 4,096 rows: few enough for their logits to
/// take little more than 512 MiB (except where 2,048 rows take more), and many enough for the
/// products to take far longer than reading and writing all of dW once per chunk.
struct HeadChunks {
  std::int64_t chunk_rows = 0;
  std::int64_t chunks = 0;
  std::int64_t logits_stride = 0;  ///< elements: V rounded up to whole packs of 16 bytes
  std::int64_t row_losses = 0;     ///< byte offset of f64 [N]; the logits are before it, at 0
  std::int64_t total_bytes = 0;    ///< byte offset of the products' own scratch
};

/// Cuts the rows of x [N,H], for w [V,H].
HeadChunks head_chunks(const kernels::TensorType& x, const kernels::TensorType& w);

}  // namespace strata::cuda

// How head_loss cuts its rows and its workspace on CUDA; from shapes and types alone.
#pragma once

#include <cstdint>

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Rows are cut into equal chunks of 2,048 to 4,096 rows: so few that their logits take 512 MiB or
/// little more, so many that reading and writing all of dW once per chunk does not show beside the
/// products. Regions are offsets in bytes, multiples of 64.
struct HeadChunks {
  std::int64_t chunk_rows = 0;
  std::int64_t chunks = 0;
  std::int64_t logits_stride = 0;  ///< V in whole packs of 16 bytes
  std::int64_t row_losses = 0;     ///< f64 [N]; before it, at 0, the logits [chunk_rows, stride]
  std::int64_t total_bytes = 0;    ///< the products' own scratch comes after them
};

/// x [N,H], w [V,H].
HeadChunks head_chunks(const kernels::TensorType& x, const kernels::TensorType& w);

}  // namespace strata::cuda

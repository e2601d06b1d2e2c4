#include "kernels/cuda/head_chunks.h"

#include <algorithm>

#include "core/round_up.h"

namespace strata::cuda {
namespace {

constexpr std::int64_t kFewestRows = 2048, kMostRows = 4096;
constexpr std::int64_t kLogitsBytes = std::int64_t{512} << 20;
/// The rows of a tile of matrix products; chunks are multiples of it.
constexpr std::int64_t kTileRows = 128;

}  // namespace

HeadChunks head_chunks(const kernels::TensorType& x, const kernels::TensorType& w) {
  const std::int64_t rows = x.shape.rows(), bytes = size_of(x.dtype);
  HeadChunks c;
  c.logits_stride = round_up(w.shape.rows(), 16 / bytes);
  const std::int64_t most =
      std::clamp(kLogitsBytes / (c.logits_stride * bytes), kFewestRows, kMostRows);
  c.chunk_rows = std::min(rows, round_up(divide_up(rows, divide_up(rows, most)), kTileRows));
  c.chunks = divide_up(rows, c.chunk_rows);
  c.row_losses = round_up(c.chunk_rows * c.logits_stride * bytes, 64);
  c.total_bytes = c.row_losses + rows * 8;
  return c;
}

}  // namespace strata::cuda

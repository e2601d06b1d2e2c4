// The cuts of the head's work and of its workspace, computed from shapes and types alone.
#pragma once

#include <cstdint>

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Columns of x, and so of dW, that are multiplied at a time: the fastest width of the library's
/// products, as measured.
constexpr std::int64_t kGradientColumns = 768;

/// A region of the workspace, in bytes; offset and size are multiples of 64.
struct HeadRegion {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// Rows are cut into chunks, so that the logits of a chunk (and their bf16 gradient) take about 128
/// MiB at most. Columns of logits (rows of W) are cut into strips of 384, or of less where there
/// would be fewer than eight strips. One task makes one tile of logits, or turns one strip of
/// logits into its gradient and multiplies it into dW while it is in the cache.
struct HeadGeometry {
  std::int64_t rows = 0;        ///< N
  std::int64_t width = 0;       ///< H
  std::int64_t columns = 0;     ///< V
  std::int64_t vocabulary = 0;  ///< valid columns
  std::int64_t chunk_rows = 0;
  std::int64_t chunks = 0;
  std::int64_t strip = 0;  ///< columns of logits per strip
  std::int64_t strips = 0;
  std::int64_t tile_rows = 0;  ///< rows of a tile of logits

  HeadRegion logits;            ///< f32 [chunk_rows, V]; train only
  HeadRegion rounded_gradient;  ///< bf16 [chunk_rows, V]; train with bf16 operands only
  HeadRegion dw_sum;            ///< f32 [V, H]; with several chunks and a 16-bit dW only
  HeadRegion largest;           ///< f32 [chunk_rows, strips]; join_row makes factors of them
  HeadRegion sums;              ///< f32 [chunk_rows, strips]
  HeadRegion target_logits;     ///< f32 [chunk_rows]
  HeadRegion row_losses;        ///< f64 [N]
  HeadRegion workers;           ///< per worker: a tile of fp32 results, then packed operands
  std::int64_t worker_tile_bytes = 0;
  std::int64_t worker_bytes = 0;
  HeadRegion products;  ///< scratch of the product for dx
  std::int64_t total_bytes = 0;
};

/// Returns the geometry of head_loss (three outputs) or head_loss_eval (one output).
HeadGeometry head_geometry(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                           int workers);

}  // namespace strata::kernels

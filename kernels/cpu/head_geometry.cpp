#include "kernels/cpu/head_geometry.h"

#include <algorithm>

#include "core/round_up.h"
#include "kernels/cpu/matmul.h"

namespace strata::kernels {
namespace {

constexpr std::int64_t kLogitsBytes = std::int64_t{128} << 20;
constexpr std::int64_t kStrip = 384;
constexpr std::int64_t kFewestStrips = 8;
constexpr std::int64_t kTileRows = 512;

bool both_bf16(TypeSpan inputs) {
  return inputs[0].dtype == DType::bf16 && inputs[1].dtype == DType::bf16;
}

void cut(HeadGeometry& g, std::int64_t bytes_per_logit) {
  const std::int64_t bytes = g.rows * g.columns * bytes_per_logit;
  g.chunk_rows =
      bytes <= kLogitsBytes
          ? g.rows
          : std::min(g.rows, round_up(divide_up(g.rows, divide_up(bytes, kLogitsBytes)), 16));
  g.chunks = divide_up(g.rows, g.chunk_rows);
  g.strip = std::min(kStrip, round_up(divide_up(g.columns, kFewestStrips), 16));
  g.strips = divide_up(g.columns, g.strip);
  g.tile_rows = std::min(g.chunk_rows,
                         round_up(divide_up(g.chunk_rows, divide_up(g.chunk_rows, kTileRows)), 16));
}

std::int64_t packing_bytes(const HeadGeometry& g, TypeSpan inputs, bool train) {
  const std::int64_t logits = tile_scratch_bytes({.m = g.tile_rows,
                                                  .n = g.strip,
                                                  .k = g.width,
                                                  .a_dtype = inputs[0].dtype,
                                                  .b_dtype = inputs[1].dtype});
  if (!train) return logits;
  return std::max(logits, tile_scratch_bytes({.m = g.strip,
                                              .n = std::min(kGradientColumns, g.width),
                                              .k = g.chunk_rows,
                                              .a_dtype = DType::f32,
                                              .b_dtype = inputs[0].dtype}));
}

std::int64_t product_bytes(const HeadGeometry& g, TypeSpan inputs, TypeSpan outputs, int workers) {
  std::int64_t bytes = 0;
  // The last chunk's fewer rows may be cut into larger tiles, and the machine decides whether the
  // logits' gradient is bf16 or fp32: take the most of all cases.
  for (const std::int64_t rows : {g.chunk_rows, g.rows - (g.chunks - 1) * g.chunk_rows})
    for (const DType gradient : {DType::f32, DType::bf16}) {
      if (gradient == DType::bf16 && !both_bf16(inputs)) continue;
      const MatmulTypes types{.a = TensorType(gradient, {rows, g.columns}),
                              .b = inputs[1],
                              .c = TensorType(outputs[1].dtype, {rows, g.width})};
      bytes = std::max(bytes, MatmulEngine::scratch_bytes(types, workers));
    }
  return bytes;
}

}  // namespace

HeadGeometry head_geometry(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                           int workers) {
  const bool train = outputs.size() > 1;
  HeadGeometry g;
  g.rows = inputs[0].shape.rows();
  g.width = inputs[0].shape.cols();
  g.columns = inputs[1].shape.rows();
  g.vocabulary = attributes.integer("vocabulary");
  const bool rounds = train && both_bf16(inputs);
  cut(g, rounds ? 6 : 4);

  const auto place = [&g](std::int64_t bytes) {
    const HeadRegion region{g.total_bytes, round_up(bytes, 64)};
    g.total_bytes += region.bytes;
    return region;
  };
  const std::int64_t logits = g.chunk_rows * g.columns;
  if (train) g.logits = place(logits * 4);
  if (rounds) g.rounded_gradient = place(logits * 2);
  const bool wide_dw = train && outputs[2].dtype == DType::f32;
  if (train && !wide_dw && g.chunks > 1) g.dw_sum = place(g.columns * g.width * 4);
  g.largest = place(g.chunk_rows * g.strips * 4);
  g.sums = place(g.chunk_rows * g.strips * 4);
  g.target_logits = place(g.chunk_rows * 4);
  g.row_losses = place(g.rows * 8);
  if (!train) g.worker_tile_bytes = round_up(g.tile_rows * g.strip * 4, 64);
  if (train && !wide_dw && g.chunks == 1) g.worker_tile_bytes = round_up(g.strip * g.width * 4, 64);
  g.worker_bytes = g.worker_tile_bytes + round_up(packing_bytes(g, inputs, train), 64);
  g.workers = place(workers * g.worker_bytes);
  if (train) g.products = place(product_bytes(g, inputs, outputs, workers));
  return g;
}

}  // namespace strata::kernels

#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/round_up.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/convert.h"

namespace strata::kernels {
namespace {

struct TileSize {
  std::int64_t m;
  std::int64_t n;
};

/// Work below this takes less time than handing out a tile.
constexpr double kLeastTileFlops = 4e6;
/// Number of tiles that keeps two to four threads busy to the end, and number that is many.
constexpr std::int64_t kFewTiles = 8;
constexpr std::int64_t kManyTiles = 48;
/// Least number of tiles for multiply_blocks, even with one or two workers: one may be slower.
constexpr std::int64_t kFewestBlockTiles = 4;

constexpr std::int64_t kPartAlignment = 16;

/// Returns the size of equal parts of `extent`: at most `most`, rounded up to kPartAlignment.
std::int64_t part(std::int64_t extent, std::int64_t most) {
  return std::min(extent, divide_up(divide_up(extent, divide_up(extent, most)), kPartAlignment) *
                              kPartAlignment);
}

Tiling tiling_of(std::int64_t m, std::int64_t n, TileSize most) {
  Tiling tiling{part(m, most.m), part(n, most.n), 0, 0};
  tiling.rows = divide_up(m, tiling.m);
  tiling.cols = divide_up(n, tiling.n);
  return tiling;
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

TileShape tile_shape(const MatmulTypes& t, std::int64_t m, std::int64_t n, bool accumulate,
                     bool in_place) {
  return {m,
          n,
          t.k(),
          t.a.dtype,
          t.b.dtype,
          t.a_transposed,
          t.b_transposed,
          t.a.row_stride,
          t.b.row_stride,
          in_place ? t.c.row_stride : n,
          accumulate};
}

/// Bytes of a worker's scratch for a tile whose C is not fp32, the bias as fp32, packed operands.
struct WorkerScratch {
  std::int64_t tile_bytes = 0;
  std::int64_t bias_bytes = 0;
  std::int64_t product_bytes = 0;
  [[nodiscard]] std::int64_t total() const { return tile_bytes + bias_bytes + product_bytes; }
};

bool all_fp32(const MatmulTypes& t) {
  return t.a.dtype == DType::f32 && t.b.dtype == DType::f32 && t.c.dtype == DType::f32;
}

WorkerScratch worker_scratch(const MatmulTypes& t, const Tiling& tiling) {
  WorkerScratch scratch;
  if (t.c.dtype != DType::f32) scratch.tile_bytes = aligned(tiling.m * tiling.n * 4);
  if (!all_fp32(t)) scratch.bias_bytes = aligned(tiling.n * 4);  // else it is fp32, too
  scratch.product_bytes = tile_scratch_bytes(tile_shape(t, tiling.m, tiling.n, false, true));
  return scratch;
}

std::byte* at(const Tensor& tensor, std::int64_t row, std::int64_t col) {
  return tensor.data + (row * tensor.row_stride() + col) * size_of(tensor.dtype());
}

/// One run of a product, which its tasks share.
struct Run {
  const Matmul& product;
  const TileProducts& tiles;
  Tiling tiling;
  WorkerScratch sizes;
  std::byte* scratch;
  /// Products for whole tiles, the last of a row, the last of a column, and the last of all.
  std::array<const TileProduct*, 4> prepared;

  void tile(std::int64_t task, int worker) const;
  void finish(std::int64_t row, std::int64_t col, std::int64_t m, std::int64_t n, float* result,
              std::byte* own) const;
};

void Run::tile(std::int64_t task, int worker) const {
  // Tasks that follow one another share columns of B.
  const std::int64_t row_tile = task % tiling.rows;
  const std::int64_t col_tile = task / tiling.rows;
  const std::int64_t row = row_tile * tiling.m;
  const std::int64_t col = col_tile * tiling.n;
  const Matmul& p = product;
  const bool in_place = p.c.dtype() == DType::f32;
  std::byte* own = scratch + worker * sizes.total();
  float* result = reinterpret_cast<float*>(in_place ? at(p.c, row, col) : own);
  const std::size_t which =
      (col_tile == tiling.cols - 1 ? 1U : 0U) + (row_tile == tiling.rows - 1 ? 2U : 0U);
  tiles.run(
      *prepared[which], worker, p.a_transposed ? at(p.a, 0, row) : at(p.a, row, 0),
      p.b_transposed ? at(p.b, col, 0) : at(p.b, 0, col), result,
      {own + sizes.tile_bytes + sizes.bias_bytes, static_cast<std::size_t>(sizes.product_bytes)});
  if (in_place && p.bias == nullptr) return;
  finish(row, col, std::min(tiling.m, p.c.rows() - row), std::min(tiling.n, p.c.cols() - col),
         result, own);
}

void Run::finish(std::int64_t row, std::int64_t col, std::int64_t m, std::int64_t n, float* result,
                 std::byte* own) const {
  const Tensor& c = product.c;
  const bool in_place = c.dtype() == DType::f32;
  const std::int64_t stride = in_place ? c.row_stride() : n;
  const float* bias = nullptr;
  if (product.bias != nullptr) {
    const std::byte* from = product.bias->data + col * size_of(product.bias->dtype());
    bias = reinterpret_cast<const float*>(from);
    if (product.bias->dtype() != DType::f32) {
      std::byte* widened = own + sizes.tile_bytes;
      convert_range(product.bias->dtype(), from, DType::f32, widened, n);
      bias = reinterpret_cast<const float*>(widened);
    }
  }
  for (std::int64_t r = 0; r < m; ++r) {
    float* values = result + r * stride;
    if (bias != nullptr) add_row(bias, values, n);
    if (!in_place)
      convert_range(DType::f32, reinterpret_cast<const std::byte*>(values), c.dtype(),
                    at(c, row + r, col), n);
  }
}

void check_operands(const Matmul& p) {
  const MatmulTypes t = p.types();
  const std::int64_t b_depth = t.b_transposed ? t.b.shape.cols() : t.b.shape.rows();
  const std::int64_t b_extent = t.b_transposed ? t.b.shape.rows() : t.b.shape.cols();
  const std::int64_t a_extent = t.a_transposed ? t.a.shape.cols() : t.a.shape.rows();
  STRATA_CHECK(b_depth == t.k() && b_extent == t.n() && a_extent == t.m(), t.a.to_string(),
               t.b.to_string(), t.c.to_string());
  STRATA_CHECK(!p.accumulate || t.c.dtype == DType::f32, t.c.to_string());
  STRATA_CHECK(p.bias == nullptr || p.bias->elements() == t.n());
  STRATA_CHECK(p.bias == nullptr || p.bias->dtype() == DType::f32 || !all_fp32(t));
}

/// Returns tiles of at most `most`, halved until there are `enough` or they become too small.
Tiling at_least(std::int64_t enough, TileSize most, const MatmulTypes& types) {
  while (true) {
    const Tiling tiling = tiling_of(types.m(), types.n(), most);
    const double flops = 2.0 * static_cast<double>(tiling.m) * static_cast<double>(tiling.n) *
                         static_cast<double>(types.k());
    const bool smallest = tiling.m <= kPartAlignment && tiling.n <= kPartAlignment;
    if (tiling.rows * tiling.cols >= enough || flops < 2 * kLeastTileFlops || smallest)
      return tiling;
    // Halving the longer side keeps the operands as short as the result allows.
    (tiling.m > tiling.n ? most.m : most.n) = std::max(tiling.m, tiling.n) / 2;
  }
}

}  // namespace

Tiling choose_library_tiling(const MatmulTypes& types) {
  // Measured with AVX-512 (docs/log.md). If the library packs B (stored transposed), more rows
  // should share the packing; else small tiles are as fast. Wide tiles write long runs of C, which
  // pays if there are many tiles.
  const std::int64_t n = types.n();
  if (const Tiling wide = tiling_of(types.m(), n, {256, 768});
      !types.b_transposed && wide.rows * wide.cols >= kManyTiles && n % 768 == 0)
    return wide;
  return types.b_transposed ? at_least(kFewTiles / 2, {512, 384}, types)
                            : at_least(kFewTiles, {256, 384}, types);
}

Tiling choose_block_tiling(const MatmulTypes& types, int workers) {
  // Measured with AVX2 (docs/log.md). Smaller tiles pack their operands more often; larger ones
  // leave workers without work.
  return at_least(std::max(kFewestBlockTiles, std::int64_t{2} * workers), {512, 768}, types);
}

MatmulEngine::MatmulEngine(ThreadPool& pool, const CpuFeatures& features)
    : pool_(pool), tiles_(pool.threads(), features) {}

std::int64_t MatmulEngine::scratch_bytes(const MatmulTypes& types, int workers) {
  return workers * std::max(worker_scratch(types, choose_library_tiling(types)).total(),
                            worker_scratch(types, choose_block_tiling(types, workers)).total());
}

void MatmulEngine::run(const Matmul& product, std::span<std::byte> scratch) {
  check_operands(product);
  const MatmulTypes types = product.types();
  const Tiling tiling = tiles_.by_library(types.a.dtype, types.b.dtype)
                            ? choose_library_tiling(types)
                            : choose_block_tiling(types, pool_.threads());
  Run run{product, tiles_, tiling, worker_scratch(types, tiling), scratch.data(), {}};
  STRATA_CHECK(static_cast<std::int64_t>(scratch.size()) >= pool_.threads() * run.sizes.total(),
               scratch.size(), run.sizes.total());
  const std::int64_t last_m = types.m() - (tiling.rows - 1) * tiling.m;
  const std::int64_t last_n = types.n() - (tiling.cols - 1) * tiling.n;
  const bool in_place = types.c.dtype == DType::f32;
  for (std::size_t which = 0; which < run.prepared.size(); ++which)
    run.prepared[which] = &tiles_.prepare(tile_shape(types, (which & 2) != 0 ? last_m : tiling.m,
                                                     (which & 1) != 0 ? last_n : tiling.n,
                                                     product.accumulate, in_place));
  const auto task = [&run](std::int64_t index, int worker) { run.tile(index, worker); };
  pool_.parallel_for(tiling.rows * tiling.cols, task);
}

}  // namespace strata::kernels

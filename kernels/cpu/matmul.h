// Matrix products on the pool: C is cut into tiles, each multiplied by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/ops/linear_products.h"

namespace strata::kernels {

/// Operands of one product. `bias` [N], added to every row of the result, may be absent.
struct Matmul {
  Tensor a;
  Tensor b;
  Tensor c;
  bool a_transposed = false;
  bool b_transposed = false;
  const Tensor* bias = nullptr;
  bool accumulate = false;  ///< add to C, which then is fp32

  [[nodiscard]] MatmulTypes types() const {
    return {a.type, b.type, c.type, a_transposed, b_transposed};
  }
};

/// A grid of tiles over C. All have `m` x `n` elements, except the last of a row or column.
struct Tiling {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t rows = 0;  ///< tiles from top to bottom
  std::int64_t cols = 0;
};

/// Returns the tiles for oneDNN. They depend on the shape alone, because oneDNN's bits depend on
/// the tile.
Tiling choose_library_tiling(const MatmulTypes& types);
/// Returns tiles for multiply_blocks, whose bits do not depend on them: some for each worker.
Tiling choose_block_tiling(const MatmulTypes& types, int workers);

/// Multiplies views of fp32, bf16 and fp16 with fp32 sums; see TileProducts for which bits.
/// One call at a time.
class MatmulEngine {
 public:
  MatmulEngine(ThreadPool& pool, const CpuFeatures& features);

  /// Bytes of scratch for a product with `workers` threads, on any machine.
  static std::int64_t scratch_bytes(const MatmulTypes& types, int workers);
  /// Writes all of C, or adds to it; C may not overlap A or B. No product is cut along K. `scratch`
  /// has scratch_bytes and is 64-byte aligned.
  void run(const Matmul& product, std::span<std::byte> scratch);

  /// Returns the products of tiles, for kernels that do more with a tile than multiply it.
  [[nodiscard]] TileProducts& tiles() { return tiles_; }
  [[nodiscard]] ThreadPool& pool() { return pool_; }

 private:
  ThreadPool& pool_;
  TileProducts tiles_;
};

}  // namespace strata::kernels

// The product of one tile by one thread, result in fp32: by oneDNN where it is at its best, which
// is two fp32 operands with AVX-512 and two bf16 ones with bf16 products, else by multiply_blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/tile_shape.h"

namespace strata::kernels {

/// Bytes of scratch that running `shape` takes on any machine.
std::int64_t tile_scratch_bytes(const TileShape& shape);

/// Makes the calling thread one on which the library works alone. OpenMP keeps that per thread and
/// allocates at the first call on each, so pools prepare their workers with it.
void be_single_threaded();

/// A shape made ready to run. Owned by its TileProducts.
class TileProduct;

/// Ready products by shape. Types fp32, bf16, fp16 in any mix; sums are fp32.
/// Two fp32 operands go to the library where the CPU has AVX-512, two bf16 ones where it has bf16
/// products: the bits then depend on the machine and on the tile, never on who runs it. All other
/// products are those of block_product.h.
class TileProducts {
 public:
  /// `workers`: how many threads may call run() at a time. limit_libraries(features) comes before.
  TileProducts(int workers, const CpuFeatures& features);
  ~TileProducts();
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  /// Tells whether the library multiplies operands of these types.
  [[nodiscard]] bool by_library(DType a, DType b) const;
  /// Tells whether two bf16 operands are multiplied as they are, not widened.
  [[nodiscard]] bool native_bf16() const;
  /// Allocates when the shape is new; not while products run. The reference stays valid.
  const TileProduct& prepare(const TileShape& shape);
  /// Runs on the calling thread; for the library OpenMP is told that it is the only one.
  /// `scratch`: tile_scratch_bytes of its own, 64-byte aligned. Does not allocate here; oneDNN
  /// takes its packing buffers (a megabyte) from malloc.
  void run(const TileProduct& product, int worker, const std::byte* a, const std::byte* b, float* c,
           std::span<std::byte> scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::kernels

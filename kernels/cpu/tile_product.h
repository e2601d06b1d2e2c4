// Multiplies one tile on one thread, into fp32: with oneDNN where that is at its best (fp32
// operands with AVX-512, bf16 ones if the CPU multiplies bf16), else with multiply_blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/tile_shape.h"

namespace strata::kernels {

/// Returns the bytes of scratch that running `shape` takes on any machine.
std::int64_t tile_scratch_bytes(const TileShape& shape);

/// Makes the library use the calling thread alone. OpenMP keeps this setting per thread and
/// allocates at the first call on each, so pools prepare their workers with this function.
void be_single_threaded();

/// A product made ready to run, which its TileProducts owns.
class TileProduct;

/// Ready products by shape. Operands are fp32, bf16 or fp16 in any mix; sums are fp32.
/// Two fp32 operands go to the library where the CPU has AVX-512, two bf16 ones where it has bf16
/// products: the bits then depend on the machine and on the tile, never on who runs it. All other
/// products are those of block_product.h.
class TileProducts {
 public:
  /// `workers` threads at most call run() at a time. Call limit_libraries(features) before.
  TileProducts(int workers, const CpuFeatures& features);
  ~TileProducts();
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  /// Tells whether the library multiplies operands of these types.
  [[nodiscard]] bool by_library(DType a, DType b) const;
  /// Tells whether two bf16 operands are multiplied as they are, not widened.
  [[nodiscard]] bool native_bf16() const;
  /// Allocates if the shape is new; not to be called while products run. The reference stays valid.
  const TileProduct& prepare(const TileShape& shape);
  /// Runs on the calling thread alone. `scratch` has tile_scratch_bytes and is 64-byte aligned; no
  /// other thread uses it. Nothing is allocated here, but oneDNN takes its packing buffers (a
  /// megabyte) from malloc.
  void run(const TileProduct& product, int worker, const std::byte* a, const std::byte* b, float* c,
           std::span<std::byte> scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::kernels

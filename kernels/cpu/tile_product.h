// The product of one tile by one thread, result in fp32: what oneDNN is used for.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "kernels/cpu/cpu_features.h"

namespace strata::kernels {

/// C[m,n] = op(A)[m,k] op(B)[k,n], or C + that. Row-major with strides in elements: a transposed A
/// is stored [k,m], a transposed B [n,k]. C is fp32.
struct TileShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a_dtype = DType::f32;
  DType b_dtype = DType::f32;
  bool a_transposed = false;
  bool b_transposed = false;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  bool accumulate = false;

  auto operator<=>(const TileShape&) const = default;
};

/// Bytes of scratch that running `shape` takes on any machine: operands of 16 bits that the library
/// cannot multiply are widened there, up to 1,024 of k at a time.
std::int64_t tile_scratch_bytes(const TileShape& shape);

/// Makes the calling thread one on which the library works alone. OpenMP keeps that per thread and
/// allocates at the first call on each, so pools prepare their workers with it.
void be_single_threaded();

/// A shape made ready to run. Owned by its TileProducts.
class TileProduct;

/// Ready products by shape. Types fp32, bf16, fp16 in any mix; sums are fp32 over the whole of k.
/// Two bf16 operands go to the hardware when the CPU has bf16 products, all other 16-bit operands
/// are widened exactly, so the bits depend on the instruction set, never on who runs which tile.
class TileProducts {
 public:
  /// `workers`: how many threads may call run() at a time. limit_libraries(features) comes before.
  TileProducts(int workers, const CpuFeatures& features);
  ~TileProducts();
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  /// Whether operands of these types are multiplied as they are.
  [[nodiscard]] bool native(DType a, DType b) const;
  /// Allocates when the shape is new; not while products run. The reference stays valid.
  const TileProduct& prepare(const TileShape& shape);
  /// Runs on the calling thread, which OpenMP is told to be the only one (omp_set_num_threads(1)).
  /// `scratch`: tile_scratch_bytes of its own, 64-byte aligned. Does not allocate here; oneDNN
  /// takes its packing buffers (a megabyte) from malloc.
  void run(const TileProduct& product, int worker, const std::byte* a, const std::byte* b, float* c,
           std::span<std::byte> scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::kernels

// Multiplies one tile on one thread: operands are packed into panels that stay in the caches. The
// scheme is that of K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/tile_shape.h"

namespace strata::kernels {

/// Depth of a partial sum. Every element of a product is a sum of partial sums over 256 values of
/// k, added one after another (to C if `accumulate`). Each partial sum is one chain of fused
/// multiply-adds that starts at zero, in the order of k. So bits depend neither on the tile nor,
/// among instruction sets that fuse multiply-add, on the instruction set.
constexpr std::int64_t kProductDepth = 256;

/// Bytes of scratch that multiply_blocks takes for a tile of this shape, a multiple of 64.
std::int64_t packed_bytes(const TileShape& shape);

/// Computes C = op(A) op(B), or adds that to C. Operands of 16 bits are widened exactly. `scratch`
/// has packed_bytes and is 64-byte aligned. Does not allocate.
void multiply_blocks(const TileShape& shape, const std::byte* a, const std::byte* b, float* c,
                     std::span<std::byte> scratch);

}  // namespace strata::kernels

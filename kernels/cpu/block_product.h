// The product of one tile by one thread: operands are packed into panels that stay in the caches.
// The scheme is that of K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/tile_shape.h"

namespace strata::kernels {

/// Depth of a partial sum. Every element of a product is a sum of partial sums over 256 of k, added
/// one after another, to C where that is asked for; each of them is one chain of fused
/// multiply-adds from zero on, in the order of k. So neither the tile nor, where multiply-add is
/// fused, the instruction set shows in the bits.
constexpr std::int64_t kProductDepth = 256;

/// Bytes of scratch that multiply_blocks takes for a tile of this shape, a multiple of 64.
std::int64_t packed_bytes(const TileShape& shape);

/// C = op(A) op(B), or C + that. Operands of 16 bits are widened exactly. `scratch`: packed_bytes,
/// 64-byte aligned. Does not allocate.
void multiply_blocks(const TileShape& shape, const std::byte* a, const std::byte* b, float* c,
                     std::span<std::byte> scratch);

}  // namespace strata::kernels

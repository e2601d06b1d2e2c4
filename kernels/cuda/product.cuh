// Pieces of the product kernels: operands in memory, the tile that a block makes, and the step from
// sums to elements of C.
#pragma once

#include "core/dtype.h"
#include "kernels/cuda/element.cuh"

namespace strata::cuda {

/// An operand. If `along_k`, its rows are rows of op(A) or columns of op(B); else it has a row per
/// k.
template <typename T>
struct ProductOperand {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool along_k = false;
  bool packs = false;  ///< packs of four elements may be loaded at multiples of four
};

/// C, and the bias to add to it.
struct ProductResult {
  std::byte* data = nullptr;
  std::int64_t stride = 0;
  const std::byte* bias = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::f32;
  DType bias_dtype = DType::f32;
  bool accumulate = false;
  bool packs = false;  ///< packs of four elements may be stored at multiples of four
};

template <typename A, typename B>
struct ProductArguments {
  ProductOperand<A> a;
  ProductOperand<B> b;
  ProductResult c;
  std::int64_t k = 0;
};

/// Host: the number of tiles, one per block, that cover C.
inline std::uint32_t tiles(const ProductResult& c, int tile_rows, int tile_cols) {
  return static_cast<std::uint32_t>(((c.rows + tile_rows - 1) / tile_rows) *
                                    ((c.cols + tile_cols - 1) / tile_cols));
}

/// Finds this block's tile. Tiles are numbered column by column within bands of eight rows of
/// tiles, so that blocks that run together share rows of A and columns of B in the L2 cache.
STRATA_DEVICE void my_tile(const ProductResult& c, int tile_rows, int tile_cols, std::int64_t& row,
                           std::int64_t& col) {
  constexpr std::uint32_t kBand = 8;
  const auto down = static_cast<std::uint32_t>((c.rows + tile_rows - 1) / tile_rows);
  const auto across = static_cast<std::uint32_t>((c.cols + tile_cols - 1) / tile_cols);
  const std::uint32_t band = block().x / (kBand * across);
  const std::uint32_t inside = block().x - band * kBand * across;
  const std::uint32_t left = down - band * kBand;
  const std::uint32_t height = left < kBand ? left : kBand;
  row = std::int64_t{band * kBand + inside % height} * tile_rows;
  col = std::int64_t{inside / height} * tile_cols;
}

STRATA_DEVICE float element_at(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::bf16:
      return to_float(reinterpret_cast<const Bf16*>(data)[index]);
    case DType::f16:
      return to_float(reinterpret_cast<const Half*>(data)[index]);
    default:
      return reinterpret_cast<const float*>(data)[index];
  }
}

template <typename T, int N>
STRATA_DEVICE void add_and_store(const ProductResult& c, std::int64_t row, std::int64_t col,
                                 const float (&sums)[N]) {
  T* at = reinterpret_cast<T*>(c.data) + row * c.stride + col;
  Pack<T, N> pack;
  if (c.packs && col + N <= c.cols) {
    if (c.accumulate) pack = load<N>(static_cast<const T*>(at));
#pragma unroll
    for (int i = 0; i < N; ++i)
      pack.v[i] = from_float<T>(c.accumulate ? sums[i] + to_float(pack.v[i]) : sums[i]);
    store<N>(at, pack);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (col + i < c.cols) at[i] = from_float<T>(c.accumulate ? sums[i] + to_float(at[i]) : sums[i]);
}

/// Stores columns [col, col + N) of row `row` of C, given their sums, and skips places outside C. N
/// is at most 4 and divides col.
template <int N>
STRATA_DEVICE void finish(const ProductResult& c, std::int64_t row, std::int64_t col,
                          float (&sums)[N]) {
  if (row >= c.rows) return;
  if (c.bias != nullptr)
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (col + i < c.cols) sums[i] += element_at(c.bias, c.bias_dtype, col + i);
  switch (c.dtype) {
    case DType::bf16:
      return add_and_store<Bf16>(c, row, col, sums);
    case DType::f16:
      return add_and_store<Half>(c, row, col, sums);
    default:
      return add_and_store<float>(c, row, col, sums);
  }
}

}  // namespace strata::cuda

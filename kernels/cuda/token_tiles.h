// The workspace of embedding_backward on CUDA, for its kernels and for planning.
#pragma once

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The rows of a tile. Rows of dx, sorted by token, are cut into tiles. A token whose rows lie in
/// one tile is summed there; of a token that spans tiles each tile makes a partial sum.
inline constexpr std::int64_t kTileRows = 32;

struct TokenTiles {
  std::int64_t rows = 0;
  std::int64_t count = 0;   ///< number of tiles
  std::int64_t stride = 0;  ///< elements of a partial sum: columns, rounded up to whole packs

  [[nodiscard]] std::int64_t keys_bytes() const { return (rows * 8 + 15) / 16 * 16; }
  /// The bytes of two arrays of keys, then of partial sums fp32 [count, 2, stride]: of the token
  /// that comes from the tile before, and of the token that begins here and goes on.
  [[nodiscard]] std::int64_t bytes() const { return 2 * keys_bytes() + count * 2 * stride * 4; }
};

inline TokenTiles token_tiles(const kernels::Shape& dx) {
  return {dx.rows(), (dx.rows() + kTileRows - 1) / kTileRows, (dx.cols() + 7) / 8 * 8};
}

}  // namespace strata::cuda

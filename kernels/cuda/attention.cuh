// The operands of one call of attention, and the order in which blocks take tiles, for all CUDA
// kernels of attention. There are two sets of them: attention_plain_*.cu take all operands and
// multiply in fp32; attention_flash_*.cu take 16-bit operands whose rows are whole 16-byte packs,
// and multiply on tensor cores. The choice (attention.cu) depends on types, head size and alignment
// only, so a model gets the same bits whatever its batch. A library may run a call instead of both
// (attention_library.h).
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// A tensor [N, heads, D]: element (n, h, d) is at data + n * stride + h * D + d.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t stride = 0;

  /// The row of one head at position 0 of a sample, which begins at `first_row`.
  STRATA_DEVICE T* head(std::int64_t first_row, int head, int head_size) const {
    return data + first_row * stride + std::int64_t{head} * head_size;
  }
};

/// A tensor [B, Hq, T] with a number per query, such as the log-sum-exp.
template <typename T>
struct QueryNumbers {
  T* data = nullptr;
  std::int64_t stride = 0;  ///< between samples

  STRATA_DEVICE T* head(int sample, int head, int sequence) const {
    return data + sample * stride + std::int64_t{head} * sequence;
  }
};

struct AttentionShape {
  int batch = 0;
  int sequence = 0;
  int heads = 0;
  int group = 0;  ///< query heads per key head
  int head_size = 0;
  float scale = 0;
  bool packs = false;  ///< inputs may be loaded four elements at once, at multiples of four

  bool drops = false;
  std::uint32_t threshold = 0;
  float keep_scale = 1;
  std::uint32_t row_blocks = 0;  ///< random blocks per query: round_up(T, 4) / 4
  std::int64_t operation_key = 0;
  const std::int64_t* rng = nullptr;
};

/// Dropout of the probabilities of one head of one sample.
struct HeadDropout {
  kernels::RandomSource source{0, 0, 0, 0};
  std::uint64_t first_block = 0;  ///< first random block of query 0
  std::uint32_t row_blocks = 0;
  std::uint32_t threshold = 0;

  /// Bit i says that key 4 * key_block + i is kept for `query`.
  [[nodiscard]] STRATA_DEVICE std::uint32_t keeps(int query, int key_block) const {
    const kernels::PhiloxBlock words =
        random_words(source, first_block + static_cast<std::uint64_t>(query) * row_blocks +
                                 static_cast<std::uint64_t>(key_block));
    std::uint32_t bits = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) bits |= words[i] >= threshold ? 1u << i : 0u;
    return bits;
  }
};

STRATA_DEVICE HeadDropout head_dropout(const AttentionShape& shape, int sample, int head) {
  if (!shape.drops) return {};
  const auto queries =
      static_cast<std::uint64_t>(head) * static_cast<std::uint64_t>(shape.sequence);
  return {{shape.rng[0], shape.rng[1], shape.rng[2 + sample], shape.operation_key},
          queries * shape.row_blocks,
          shape.row_blocks,
          shape.threshold};
}

/// The order in which blocks take tiles. Blocks go through the heads in sections, few enough heads
/// for what they all read to stay in the L2 cache. Within a section they take the first tile of
/// every head, then the second, and so on. Kernels number tiles from the one with most work on, so
/// that the last blocks to run are short.
struct TileOrder {
  std::uint32_t tiles = 0;          ///< per head
  std::uint32_t heads = 0;          ///< per sample
  std::uint32_t all = 0;            ///< heads of all samples
  std::uint32_t section_heads = 1;  ///< heads in a section
};

struct TilePlace {
  int tile, head, sample;
};

STRATA_DEVICE TilePlace tile_place(const TileOrder& order, std::uint32_t block) {
  const std::uint32_t section = block / (order.section_heads * order.tiles);
  const std::uint32_t first = section * order.section_heads;
  const std::uint32_t left = order.all - first;
  const std::uint32_t count = left < order.section_heads ? left : order.section_heads;
  const std::uint32_t inside = block - first * order.tiles;
  const std::uint32_t at = first + inside % count;
  return {static_cast<int>(inside / count), static_cast<int>(at % order.heads),
          static_cast<int>(at / order.heads)};
}

template <typename T>
struct AttentionForward {
  AttentionShape shape;
  TileOrder order;
  HeadRows<const T> q, k, v;
  HeadRows<T> o;
  QueryNumbers<float> lse;
};

template <typename T>
struct AttentionBackward {
  AttentionShape shape;
  TileOrder order;
  HeadRows<const T> dout, q, k, v, o;
  HeadRows<T> dq, dk, dv;
  QueryNumbers<const float> lse;
  QueryNumbers<float> delta;  ///< sum over a row of dO * O; the first kernel writes it
};

// Functions of the host. -----------------------------------------------------------------------

/// Makes the order for `heads` heads per sample, of which each `unit` read the same `bytes` (keys
/// and values of one key head, or its queries and their gradients).
TileOrder tile_order(const AttentionShape& shape, int rows_per_tile, int heads, int unit,
                     std::int64_t bytes);

inline LaunchShape tiles_launch(const TileOrder& order, std::int64_t shared_bytes) {
  return {{order.tiles * order.all, 1, 1}, shared_bytes};
}

/// Computes sums in fp32 for operands of any type and alignment; head sizes are at most 256.
template <typename T>
void plain_attention(kernels::Stream& stream, const AttentionForward<T>& call);
/// Computes dK and dV; delta must be complete.
template <typename T>
void plain_attention_keys(kernels::Stream& stream, const AttentionBackward<T>& call);
/// Computes dQ; delta must be complete.
template <typename T>
void plain_attention_queries(kernels::Stream& stream, const AttentionBackward<T>& call);

/// Computes on tensor cores (sm_80 or later). T has 16 bits, the head size is a multiple of 8 from
/// 32 to 256, and every row of every operand is 16-byte aligned.
template <typename T>
void flash_attention(kernels::Stream& stream, const AttentionForward<T>& call);
template <typename T>
void flash_attention_backward(kernels::Stream& stream, const AttentionBackward<T>& call);

}  // namespace strata::cuda

// Pieces of attention with fp32 products, for any type, head size and alignment. They serve
// operands that the tensor-core kernels cannot take.
//
// A block of 16 x 16 threads works on tiles of 64 queries by 64 keys. Heads come through shared
// memory 64 columns at a time, so shared memory does not depend on the head size (69 KiB at most),
// and every product is 64 x 64 x 64. A thread makes 4 x 4 of its sums: 64 fma for eight 16-byte
// reads of shared memory, about the ratio at which an SM runs both at full rate. Each tile reads
// its operands from the L2 cache again: 2 D * 64 * 64 * 2 flops for 3 * 64 * D * 4 bytes forward,
// 21 flops per byte, so fp32 arithmetic is the limit and not the L2 cache.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/cuda/attention.cuh"

namespace strata::cuda::plain {

inline constexpr int kTile = 64;  // queries, keys, or columns of a head in a tile
inline constexpr int kPitch =
    kTile + 4;                      // floats between rows in shared memory: 16-byte aligned, and
                                    // rows that one instruction reads lie in different banks
inline constexpr int kBlocks = 16;  // threads each way
inline constexpr int kEach = kTile / kBlocks;
inline constexpr int kPlainThreads = kBlocks * kBlocks;
inline constexpr std::int64_t kTileBytes = sizeof(float) * kTile * kPitch;
inline constexpr std::int64_t kKeepBytes = kTile * kTile / 4;
inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// The 4 x 4 sums of one thread: rows row_of(i); columns column_of(j), or 4 consecutive ones.
using Sums = float[kEach][kEach];

STRATA_DEVICE int row_of(int i) { return thread() / kBlocks + kBlocks * i; }
STRATA_DEVICE int column_of(int j) { return thread() % kBlocks + kBlocks * j; }

STRATA_DEVICE void clear(Sums& sums) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) sums[i][j] = 0;
}

struct SharedTile {
  float* data;

  [[nodiscard]] STRATA_DEVICE Pack<float, 4> pack(int row, int column) const {
    return load<4>(static_cast<const float*>(data) + row * kPitch + column);
  }
  STRATA_DEVICE float& at(int row, int column) const { return data[row * kPitch + column]; }
};

STRATA_DEVICE SharedTile shared_tile(int index) {
  return {reinterpret_cast<float*>(shared_memory() + index * kTileBytes)};
}

/// Loads rows [row, row + 64), columns [column, column + 64) of a head; zeros outside the head.
template <typename T>
STRATA_DEVICE void load_tile(const SharedTile& tile, const T* head, std::int64_t stride, int row,
                             int column, const AttentionShape& shape) {
  const int first = thread() % kBlocks * 4;
  const T* from = head + (row + row_of(0)) * stride + column + first;
#pragma unroll 2
  for (int i = 0; i < kEach; ++i, from += kBlocks * stride) {
    const bool inside = row + row_of(i) < shape.sequence;
    const int left = inside ? shape.head_size - column - first : 0;
    Pack<float, 4> pack{};
    if (shape.packs && left >= 4) {
      const auto elements = load<4>(from);
#pragma unroll
      for (int j = 0; j < 4; ++j) pack.v[j] = to_float(elements.v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j < left) pack.v[j] = to_float(from[j]);
    }
    store<4>(tile.data + row_of(i) * kPitch + first, pack);
  }
}

/// Stores rows [row, row + 64), columns [column, column + 64) of a head; each thread's sums are of
/// 4 consecutive columns.
template <typename T>
STRATA_DEVICE void store_tile(const Sums& sums, T* head, std::int64_t stride, int row, int column,
                              const AttentionShape& shape) {
  const int first = column + thread() % kBlocks * 4;
  T* to = head + (row + row_of(0)) * stride + first;
#pragma unroll
  for (int i = 0; i < kEach; ++i, to += kBlocks * stride) {
    if (row + row_of(i) >= shape.sequence) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + j < shape.head_size) to[j] = from_float<T>(sums[i][j]);
  }
}

/// The number of columns that a head has in chunk `chunk` of 64.
STRATA_DEVICE int width_of(const AttentionShape& shape, int chunk) {
  const int left = shape.head_size - chunk * kTile;
  return left < kTile ? left : kTile;
}

/// sums[i][j] += row row_of(i) of `a` times row column_of(j) of `b`, in order of the first `width`
/// columns.
STRATA_DEVICE void multiply_rows(const SharedTile& a, const SharedTile& b, int width, Sums& sums) {
#pragma unroll 1
  for (int d = 0; d < width; d += 4) {
    Pack<float, 4> left[kEach], right[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) left[i] = a.pack(row_of(i), d);
#pragma unroll
    for (int j = 0; j < kEach; ++j) right[j] = b.pack(column_of(j), d);
#pragma unroll
    for (int x = 0; x < 4; ++x)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i].v[x], right[j].v[x], sums[i][j]);
  }
}

/// sums[i][j] += row row_of(i) of `a` times column 4 * (thread % 16) + j of `b`, in order of rows.
STRATA_DEVICE void multiply_columns(const SharedTile& a, const SharedTile& b, Sums& sums) {
  const int first = thread() % kBlocks * 4;
#pragma unroll 1
  for (int k = 0; k < kTile; k += 4) {
    Pack<float, 4> left[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) left[i] = a.pack(row_of(i), k);
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      const Pack<float, 4> right = b.pack(k + x, first);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i].v[x], right.v[j], sums[i][j]);
    }
  }
}

/// The dropout mask of a tile: [64, 16] bytes, one per query and 4 keys. The low 4 bits of a byte
/// belong to the keys; 1 means that the probability is kept.
struct KeepTile {
  std::uint8_t* bytes;

  STRATA_DEVICE void make(const AttentionShape& shape, int sample, int head, int query,
                          int key) const {
    const HeadDropout dropout = head_dropout(shape, sample, head);
#pragma unroll 1
    for (int at = thread(); at < kKeepBytes; at += kPlainThreads)
      bytes[at] = static_cast<std::uint8_t>(
          dropout.keeps(query + at / (kTile / 4), key / 4 + at % (kTile / 4)));
  }
  [[nodiscard]] STRATA_DEVICE bool keeps(int query, int key) const {
    return bytes[query * (kTile / 4) + key / 4] >> key % 4 & 1;
  }
};

/// Calls run(std::integral_constant<int, chunks>()) with the number of chunks to compile for.
template <typename Run>
void with_chunks(int head_size, const Run& run) {
  if (head_size <= kTile) return run(std::integral_constant<int, 1>());
  if (head_size <= 2 * kTile) return run(std::integral_constant<int, 2>());
  return run(std::integral_constant<int, 4>());
}

}  // namespace strata::cuda::plain

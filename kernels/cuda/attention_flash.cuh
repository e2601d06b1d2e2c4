// Pieces of attention on tensor cores: tiles of a head in shared memory, their products by m16n8k16
// instructions, and dropout masks. A warp owns 16 or 32 rows of a product, so maxima, sums and the
// second product need no other warp: the sums of the first product, rounded to 16 bits, have the
// register layout that mma wants of the left operand of the second.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/fragments.cuh"

namespace strata::cuda {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int kFlashWarps = 4;
constexpr int kFlashThreads = kFlashWarps * kWarp;

/// A warp's kM x kN fragments of 16 x 8 sums: element e of fragment (m, n) belongs to row 16 m +
/// lane / 4 + 8 (e / 2) and column 8 n + 2 (lane % 4) + e % 2.
template <int kM, int kN>
using Fragments = float[kM][kN][4];
/// A left operand of the same rows and 16 columns, 16-bit elements in pairs.
template <int kM>
using LeftFragments = std::uint32_t[kM][4];

/// Row and column of this lane's element e within a tile of fragments.
STRATA_DEVICE int fragment_row(int m, int e) { return 16 * m + lane() / 4 + e / 2 * 8; }
STRATA_DEVICE int fragment_column(int n, int e) { return 8 * n + lane() % 4 * 2 + e % 2; }

/// Shows the compiler that `x` is equal in all lanes, so that it uses uniform registers.
template <typename T>
STRATA_DEVICE T uniform(T x) {
  return shuffle_from(x, 0);
}

STRATA_DEVICE HeadDropout uniform_dropout(const AttentionShape& shape, int sample, int head) {
  HeadDropout dropout = head_dropout(shape, sample, head);
  kernels::RandomSource& source = dropout.source;
  source.key = {uniform(source.key[0]), uniform(source.key[1])};
  source.sample_high = uniform(source.sample_high);
  source.sample_low = uniform(source.sample_low);
  return dropout;
}

template <int kM, int kN>
STRATA_DEVICE void clear(Fragments<kM, kN>& sums) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][n][e] = 0;
}

/// Rounds two fragments side by side, which then are a left operand.
template <typename T>
STRATA_DEVICE void round_fragment(std::uint32_t (&to)[4], const float (&from)[2][4]) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    to[2 * n] = pair_from_floats<T>(from[n][0], from[n][1]);
    to[2 * n + 1] = pair_from_floats<T>(from[n][2], from[n][3]);
  }
}

/// Rows of one head in shared memory, kWidth 16-bit elements each. Rows are cut into chunks of 16
/// bytes; the lowest bits of a chunk's index are xor'ed with bits of its row, so that the eight
/// rows of an 8x8 matrix lie in different banks. Chunks whose rows differ by a multiple of eight
/// have addresses that differ by a constant, so one register addresses many of them.
template <typename T, int kWidth>
struct HeadTile {
  static_assert(sizeof(T) == 2 && kWidth % 32 == 0);
  static constexpr int kChunks = kWidth / 8;
  static constexpr int kRowBytes = 2 * kWidth;
  static constexpr int kPermuted = kChunks % 8 == 0 ? 8 : 4;  // chunks permuted among each other

  std::byte* data;

  /// Byte offset of a chunk.
  static STRATA_DEVICE int offset(int row, int chunk) {
    const int bits = kPermuted == 8 ? row % 8 : row / 2 % 4;
    return row * kRowBytes + (chunk ^ bits) * 16;
  }
  STRATA_DEVICE T* chunk(int row, int index) const {
    return reinterpret_cast<T*>(data + offset(row, index));
  }

  static constexpr int kAcross = kPermuted, kDown = kFlashThreads / kAcross;  // threads that copy
  static_assert(kChunks % kAcross == 0 && kDown % 8 == 0);

  static STRATA_DEVICE int copied_row() {
    return static_cast<int>(static_cast<unsigned>(thread()) / kAcross);
  }
  static STRATA_DEVICE int copied_chunk() {
    return static_cast<int>(static_cast<unsigned>(thread()) % kAcross);
  }
  /// The first chunk that this thread copies of a head's rows from `row` on.
  static STRATA_DEVICE const T* source(const HeadRows<const T>& rows, const T* head, int row) {
    return head + (row + copied_row()) * rows.stride + copied_chunk() * 8;
  }
  /// Starts this thread's part of the copy of rows [first, first + kRows); `from` is what source()
  /// returned for `first`. Places outside the sequence and beyond the head size become zeros.
  template <int kRows>
  STRATA_DEVICE void fetch(const T* from, std::int64_t stride, int first,
                           const AttentionShape& shape) const {
    static_assert(kRows % kDown == 0);
    const int rows_left = shape.sequence - first - copied_row();
    const int chunks_left = shape.head_size / 8 - copied_chunk();
    std::byte* to = data + offset(copied_row(), copied_chunk());
#pragma unroll
    for (int i = 0; i < kRows; i += kDown, from += kDown * stride)
#pragma unroll
      for (int j = 0; j < kChunks; j += kAcross)
        copy_async16(to + i * kRowBytes + j * 16, from + j * 8, i < rows_left && j < chunks_left);
  }

  /// Addresses of this lane's row of four 8x8 matrices. at(row, chunk) takes rows that are
  /// multiples of eight and even chunks, both constants.
  struct Matrices {
    const std::byte* data;
    int lane_offset;

    [[nodiscard]] STRATA_DEVICE const std::byte* at(int row, int chunk) const {
      return data + (lane_offset ^ chunk % kPermuted * 16) +
             (row * kRowBytes + chunk / kPermuted * kPermuted * 16);
    }
  };
  /// Rows from `row` on (a multiple of eight) as left operands.
  [[nodiscard]] STRATA_DEVICE Matrices left(int row) const {
    return {data + row * kRowBytes, offset(lane() % 16, lane() / 16)};
  }
  /// The same rows as columns of right operands.
  [[nodiscard]] STRATA_DEVICE Matrices right(int row) const {
    return {data + row * kRowBytes, offset(lane() / 16 * 8 + lane() % 8, lane() / 8 % 2)};
  }
  /// The same rows as rows of right operands.
  [[nodiscard]] STRATA_DEVICE Matrices right_down(int row) const { return left(row); }
};

STRATA_DEVICE void split(std::uint32_t (&b)[2][2], const std::uint32_t (&r)[4]) {
  b[0][0] = r[0];
  b[0][1] = r[1];
  b[1][0] = r[2];
  b[1][1] = r[3];
}

/// Adds to `sums` the product of rows [a_row, a_row + 16 kM) of `a` and the transpose of rows
/// [b_row, b_row + 8 kN) of `b`, over all their columns.
template <typename T, int kWidth, int kM, int kN>
STRATA_DEVICE void multiply_rows(Fragments<kM, kN>& sums, const HeadTile<T, kWidth>& a, int a_row,
                                 const HeadTile<T, kWidth>& b, int b_row) {
  const auto lefts = a.left(a_row);
  const auto rights = b.right(b_row);
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step) {
    std::uint32_t left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) load_matrix4(left[m], lefts.at(16 * m, 2 * step));
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t four[4], right[2][2];
      load_matrix4(four, rights.at(8 * n, 2 * step));
      split(right, four);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_fragments(T{}, sums[m][n], left[m], right[0]);
        multiply_fragments(T{}, sums[m][n + 1], left[m], right[1]);
      }
    }
  }
}

/// Adds to `sums` the product of `weights` and rows [row, row + 16) of `b`, columns [0, 8 kN).
template <typename T, int kWidth, int kM, int kN>
STRATA_DEVICE void multiply_down(Fragments<kM, kN>& sums, const LeftFragments<kM>& weights,
                                 const HeadTile<T, kWidth>& b, int row) {
  const auto rights = b.right_down(row);
#pragma unroll
  for (int n = 0; n < kN; n += 2) {
    std::uint32_t four[4], right[2][2];
    load_matrix4_transposed(four, rights.at(0, n));
    split(right, four);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      multiply_fragments(T{}, sums[m][n], weights[m], right[0]);
      multiply_fragments(T{}, sums[m][n + 1], weights[m], right[1]);
    }
  }
}

/// Writes a warp's 16 kM rows by 8 kN columns, rounded, to a head at (`row`, `column`). They go
/// through `scratch`, this warp's shared memory of that size, so that stores are whole chunks.
template <typename T, int kM, int kN>
STRATA_DEVICE void store_fragments(const Fragments<kM, kN>& sums, std::byte* scratch, T* head,
                                   std::int64_t stride, int row, int column,
                                   const AttentionShape& shape) {
  const HeadTile<T, 8 * kN> tile{scratch};
  sync_warp();  // all lanes have read the old content of scratch
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Pack<std::uint32_t, 1> pair = {
            {pair_from_floats<T>(sums[m][n][2 * half], sums[m][n][2 * half + 1])}};
        store<1>(
            reinterpret_cast<std::uint32_t*>(tile.chunk(fragment_row(m, 2 * half), n)) + lane() % 4,
            pair);
      }
  sync_warp();
#pragma unroll
  for (int i = 0; i < 16 * kM * kN / kWarp; ++i) {
    const int at = lane() + i * kWarp, down = at / kN, index = at % kN;
    if (row + down < shape.sequence && column + index * 8 < shape.head_size)
      store<8>(head + (row + down) * stride + column + index * 8,
               load<8>(static_cast<const T*>(tile.chunk(down, index))));
  }
}

/// The dropout mask of a row of kN <= 8 fragments of queries by keys: bit 4 n + e says that element
/// e of fragment n is kept. A random block covers four keys of one query, which two lanes hold. One
/// of them makes the block of row lane / 4, the other that of the row 8 below; then they exchange.
template <int kN>
STRATA_DEVICE std::uint32_t keep_queries(const HeadDropout& dropout, int query, int key) {
  static_assert(kN <= 8);
  const int odd = lane() % 2;
  std::uint32_t mine = 0;
#pragma unroll 2
  for (int n = 0; n < kN; ++n)
    mine |= dropout.keeps(query + lane() / 4 + 8 * odd, key / 4 + 2 * n + lane() % 4 / 2) << 4 * n;
  const std::uint32_t other = shuffle_xor(mine, 1);
  const std::uint32_t upper = (odd ? other : mine) >> 2 * odd;
  const std::uint32_t lower = (odd ? mine : other) >> 2 * odd;
  return (upper & 0x33333333u) | (lower & 0x33333333u) << 2;
}

/// The dropout mask of fragments of keys by queries, bits as in keep_queries. A random block covers
/// four rows of one column, held by four lanes; each makes one of the four blocks that they share.
template <int kN>
STRATA_DEVICE std::uint32_t keep_keys(const HeadDropout& dropout, int key, int query) {
  static_assert(kN <= 8);
  const int member = lane() / 4 % 4;
  std::uint32_t mine = 0;
#pragma unroll 2
  for (int n = 0; n < kN; ++n)
    mine |= dropout.keeps(query + 8 * n + lane() % 4 * 2 + member % 2,
                          key / 4 + member / 2 * 2 + lane() / 16)
            << 4 * n;
  std::uint32_t bits = 0;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const std::uint32_t from = shuffle_from(mine, (lane() & ~12) | e << 2);
    bits |= (from >> member & 0x11111111u) << e;
  }
  return bits;
}

/// Calls run(std::integral_constant<int, width>()) with the width of tiles for a head size.
template <typename Run>
void with_width(int head_size, const Run& run) {
  if (head_size <= 64) return run(std::integral_constant<int, 64>());
  if (head_size <= 96) return run(std::integral_constant<int, 96>());
  if (head_size <= 128) return run(std::integral_constant<int, 128>());
  return run(std::integral_constant<int, 256>());
}

}  // namespace strata::cuda

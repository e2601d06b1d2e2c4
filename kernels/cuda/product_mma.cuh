// Matrix products of bf16 or fp16 by matrix instructions (mma).
#pragma once

#include "kernels/cuda/fragments.cuh"
#include "kernels/cuda/product.cuh"

namespace strata::cuda {

/// One operand's part of a step in shared memory, with a row per element of M or N if kAlongK, else
/// with a row per k. Rows are cut into chunks of eight elements, permuted so that the eight rows of
/// an 8x8 matrix lie in different banks.
template <typename T, int kOuter, int kDepth, bool kAlongK>
struct OperandTile {
  static constexpr int kChunksPerRow = (kAlongK ? kDepth : kOuter) / 8;
  static constexpr int kChunks = kOuter * kDepth / 8;
  static_assert(kChunksPerRow == 4 || kChunksPerRow % 8 == 0);

  alignas(128) T data[kOuter * kDepth];

  STRATA_DEVICE T* chunk(int row, int index) {
    // Two rows of four chunks fill 128 bytes, which is all banks once.
    const int permuted = kChunksPerRow == 4 ? index ^ (row / 2 % 4) : index ^ (row % 8);
    return data + (row * kChunksPerRow + permuted) * 8;
  }

  /// Starts this thread's copies of the part of `from` at `first` in M or N (of extent `count`) and
  /// at k; zeros outside the operand.
  template <int kThreads>
  STRATA_DEVICE void fetch(const ProductOperand<T>& from, std::int64_t first, std::int64_t count,
                           std::int64_t k, std::int64_t k_count) {
    static_assert(kChunks % kThreads == 0);
    const std::int64_t first_row = kAlongK ? first : k, rows = kAlongK ? count : k_count;
    const std::int64_t first_col = kAlongK ? k : first, cols = kAlongK ? k_count : count;
#pragma unroll
    for (int i = 0; i < kChunks / kThreads; ++i) {
      const int at = thread() + i * kThreads;
      const int down = at / kChunksPerRow, across = at % kChunksPerRow;
      const std::int64_t row = first_row + down, col = first_col + across * 8;
      const bool inside = row < rows && col < cols;
      copy_async16(chunk(down, across), from.data + (inside ? row * from.stride + col : 0), inside);
    }
  }

  /// Loads four 8x8 matrices [M or N][k]. Each lane passes the start of the one it addresses.
  STRATA_DEVICE void load_matrices(std::uint32_t (&r)[4], int outer, int k) {
    const int line = lane() % 8;
    if constexpr (kAlongK)
      load_matrix4(r, chunk(outer + line, k / 8));
    else
      load_matrix4_transposed(r, chunk(k + line, outer / 8));
  }
};

/// Makes one 128x128 tile of C per block, 64x32 per warp. K goes in steps of 32, of which three are
/// in shared memory or on their way there. Per 16 of K a warp reads 3 KiB of shared memory for 16
/// matrix instructions. Operands consist of whole chunks of eight elements, 16-byte aligned.
template <typename T, bool kAAlongK, bool kBAlongK>
struct MmaProduct {
  static constexpr int kWarpsDown = 2, kWarpsAcross = 4;
  static constexpr int kThreads = kWarpsDown * kWarpsAcross * kWarp;
  static constexpr int kTile = 128;
  static constexpr int kDepth = 32;
  static constexpr int kSteps = 3;
  static constexpr int kRows = kTile / kWarpsDown, kCols = kTile / kWarpsAcross;  // per warp
  static constexpr int kDown = kRows / 16, kAcross = kCols / 8;                   // its fragments
  struct Step {
    OperandTile<T, kTile, kDepth, kAAlongK> a;
    OperandTile<T, kTile, kDepth, kBAlongK> b;
  };
  static constexpr std::int64_t kSharedBytes = kSteps * sizeof(Step);
  using Sums = float[kDown][kAcross][4];

  static STRATA_DEVICE int warp_row() { return warp() / kWarpsAcross * kRows; }
  static STRATA_DEVICE int warp_col() { return warp() % kWarpsAcross * kCols; }

  static STRATA_DEVICE void multiply(Sums& sums, Step& step) {
    // Lanes 8i to 8i + 7 give the addresses of matrix i, which goes to register i.
    const int odd = lane() / 8 % 2 * 8, upper = lane() / 16 * 8;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      std::uint32_t b[kAcross][2];
#pragma unroll
      for (int j = 0; j < kAcross; j += 2) {
        std::uint32_t r[4];  // columns 0-7 with k 0-7, then with k 8-15; the same for columns 8-15
        step.b.load_matrices(r, warp_col() + j * 8 + upper, k + odd);
        b[j][0] = r[0];
        b[j][1] = r[1];
        b[j + 1][0] = r[2];
        b[j + 1][1] = r[3];
      }
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        std::uint32_t a[4];  // rows 0-7, then 8-15, with k 0-7; the same with k 8-15
        step.a.load_matrices(a, warp_row() + i * 16 + odd, k + upper);
#pragma unroll
        for (int j = 0; j < kAcross; ++j) multiply_fragments(T{}, sums[i][j], a, b[j]);
      }
    }
  }

  static STRATA_DEVICE void run(const ProductArguments<T, T>& x) {
    auto* steps = reinterpret_cast<Step*>(shared_memory());
    std::int64_t first_row, first_col;
    my_tile(x.c, kTile, kTile, first_row, first_col);
    const auto fetch = [&](std::int64_t k) {
      if (k < x.k) {
        Step& step = steps[k / kDepth % kSteps];
        step.a.template fetch<kThreads>(x.a, first_row, x.c.rows, k, x.k);
        step.b.template fetch<kThreads>(x.b, first_col, x.c.cols, k, x.k);
      }
      copy_async_commit();  // one group per step, even an empty one, so that waits count steps
    };
    Sums sums = {};
#pragma unroll
    for (int i = 0; i < kSteps - 1; ++i) fetch(i * kDepth);
    for (std::int64_t k = 0; k < x.k; k += kDepth) {
      copy_async_wait<kSteps - 2>();
      // The barrier says that this step has arrived for all threads, and that none reads the step
      // before, which the next copies overwrite.
      sync_block();
      fetch(k + (kSteps - 1) * kDepth);
      multiply(sums, steps[k / kDepth % kSteps]);
    }
    copy_async_wait<0>();
    write(x.c, first_row + warp_row() + lane() / 4, first_col + warp_col() + lane() % 4 * 2, sums);
  }

  static STRATA_DEVICE void write(const ProductResult& c, std::int64_t row, std::int64_t col,
                                  const Sums& sums) {
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          float pair[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
          finish(c, row + i * 16 + half * 8, col + j * 8, pair);
        }
  }
};

}  // namespace strata::cuda

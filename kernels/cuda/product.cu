// Matrix products by our own kernels: by matrix instructions if both operands have the same 16-bit
// type and rows of whole 16-byte chunks, else by fp32 multiply-adds.
#include "kernels/cuda/product.cuh"

#include <cmath>
#include <type_traits>

#include "core/check.h"
#include "kernels/cuda/matrix_product.h"
#include "kernels/cuda/product_mma.cuh"

namespace strata::cuda {
namespace {

/// Returns a * b + c, fused on devices only: a host would call its library for that.
STRATA_DEVICE float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

/// Makes one 64x64 tile of C per block, 8x4 elements per thread. K goes in steps of 16: while one
/// step is multiplied out of shared memory, the next is on its way to registers. The sums of steps
/// are added in order of k: a quarter of a running sum's error, for one addition in sixteen. Per k
/// a warp reads 4 x 128 bytes of shared memory for 32 multiplications, which are the bound.
template <typename A, typename B>
struct TiledProduct {
  static constexpr int kThreads = 128;
  static constexpr int kTile = 64;
  static constexpr int kDepth = 16;
  static constexpr int kRows = 8, kCols = 4;  // elements of C per thread
  static constexpr int kPacks = kTile * kDepth / 4 / kThreads;
  /// The operands of a step, with a row per k. Padding rows by 16 bytes halves the bank conflicts
  /// of writing along k, from four to two accesses per bank.
  struct Step {
    float a[kDepth][kTile + 4];
    float b[kDepth][kTile + 4];
  };
  static constexpr std::int64_t kSharedBytes = 2 * sizeof(Step);

  /// The place of this thread's pack `i` in a tile of an operand.
  struct Place {
    int outer, k;
  };
  static STRATA_DEVICE Place place(bool along_k, int i) {
    const int pack = thread() + i * kThreads;
    if (along_k) return {pack / (kDepth / 4), pack % (kDepth / 4) * 4};
    return {pack % (kTile / 4) * 4, pack / (kTile / 4)};
  }

  /// Loads this thread's part of the tile at `first` in M or N (of extent `count`) and at `k`;
  /// zeros outside the operand.
  template <typename T>
  static STRATA_DEVICE void fetch(Pack<T, 4> (&to)[kPacks], const ProductOperand<T>& from,
                                  std::int64_t first, std::int64_t count, std::int64_t k,
                                  std::int64_t k_count) {
    const std::int64_t rows = from.along_k ? count : k_count;
    const std::int64_t cols = from.along_k ? k_count : count;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const Place p = place(from.along_k, i);
      const std::int64_t row = from.along_k ? first + p.outer : k + p.k;
      const std::int64_t col = from.along_k ? k + p.k : first + p.outer;
      const T* at = from.data + row * from.stride + col;
      if (from.packs && row < rows && col + 4 <= cols) {
        to[i] = load<4>(at);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) to[i].v[j] = row < rows && col + j < cols ? at[j] : T{};
      }
    }
  }

  template <typename T>
  static STRATA_DEVICE void put(float (&to)[kDepth][kTile + 4], const Pack<T, 4> (&from)[kPacks],
                                bool along_k) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const Place p = place(along_k, i);
      if (along_k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) to[p.k + j][p.outer] = to_float(from[i].v[j]);
      } else {
        Pack<float, 4> wide;
#pragma unroll
        for (int j = 0; j < 4; ++j) wide.v[j] = to_float(from[i].v[j]);
        store<4>(&to[p.k][p.outer], wide);
      }
    }
  }

  static STRATA_DEVICE void multiply(float (&sums)[kRows][kCols], const Step& step, int row,
                                     int col) {
    float part[kRows][kCols] = {};
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a[kRows];
#pragma unroll
      for (int half = 0; half < kRows / 4; ++half) {
        const Pack<float, 4> four = load<4>(&step.a[k][row + 4 * half]);
#pragma unroll
        for (int i = 0; i < 4; ++i) a[4 * half + i] = four.v[i];
      }
      const Pack<float, 4> b = load<4>(&step.b[k][col]);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) part[i][j] = multiply_add(a[i], b.v[j], part[i][j]);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; ++j) sums[i][j] += part[i][j];
  }

  static STRATA_DEVICE void run(const ProductArguments<A, B>& x) {
    auto* steps = reinterpret_cast<Step*>(shared_memory());
    std::int64_t first_row, first_col;
    my_tile(x.c, kTile, kTile, first_row, first_col);
    const int row = thread() / (kTile / kCols) * kRows, col = thread() % (kTile / kCols) * kCols;
    float sums[kRows][kCols] = {};
    Pack<A, 4> a[kPacks];
    Pack<B, 4> b[kPacks];
    fetch(a, x.a, first_row, x.c.rows, 0, x.k);
    fetch(b, x.b, first_col, x.c.cols, 0, x.k);
    for (std::int64_t k = 0; k < x.k; k += kDepth) {
      Step& step = steps[k / kDepth % 2];
      put(step.a, a, x.a.along_k);
      put(step.b, b, x.b.along_k);
      // One barrier per step is enough: after it no thread reads the other Step, written next.
      sync_block();
      if (k + kDepth < x.k) {
        fetch(a, x.a, first_row, x.c.rows, k + kDepth, x.k);
        fetch(b, x.b, first_col, x.c.cols, k + kDepth, x.k);
      }
      multiply(sums, step, row, col);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) finish(x.c, first_row + row + i, first_col + col, sums[i]);
  }
};

/// True if every row starts at a multiple of `elements` elements.
bool rows_aligned(const kernels::Tensor& tensor, std::int64_t elements) {
  const auto bytes = static_cast<std::uintptr_t>(elements * size_of(tensor.dtype()));
  return reinterpret_cast<std::uintptr_t>(tensor.data) % bytes == 0 &&
         (tensor.rows() == 1 || tensor.row_stride() % elements == 0);
}

bool whole_chunks(const kernels::Tensor& tensor) {
  return rows_aligned(tensor, 8) && tensor.cols() % 8 == 0;
}

template <typename T>
ProductOperand<T> operand(const kernels::Tensor& tensor, bool along_k) {
  return {tensor.row<const T>(), tensor.row_stride(), along_k, rows_aligned(tensor, 4)};
}

ProductResult result_of(const MatrixProduct& product) {
  ProductResult c{.data = product.c.data,
                  .stride = product.c.row_stride(),
                  .rows = product.m(),
                  .cols = product.n(),
                  .dtype = product.c.dtype(),
                  .accumulate = product.accumulate,
                  .packs = rows_aligned(product.c, 4)};
  if (product.bias != nullptr) {
    c.bias = product.bias->data;
    c.bias_dtype = product.bias->dtype();
  }
  return c;
}

void check_extents(const MatrixProduct& p) {
  const kernels::Tensor &a = p.a, &b = p.b;
  STRATA_CHECK((p.a_transposed ? a.cols() : a.rows()) == p.m(), a.type.to_string(), p.m());
  STRATA_CHECK((p.b_transposed ? b.rows() : b.cols()) == p.n(), b.type.to_string(), p.n());
  STRATA_CHECK((p.b_transposed ? b.cols() : b.rows()) == p.k(), b.type.to_string(), p.k());
  STRATA_CHECK(p.bias == nullptr || p.bias->elements() == p.n(), p.n());
}

template <typename Body, typename A, typename B>
void launch_product(kernels::Stream& stream, const MatrixProduct& product) {
  const ProductArguments<A, B> arguments{operand<A>(product.a, !product.a_transposed),
                                         operand<B>(product.b, product.b_transposed),
                                         result_of(product), product.k()};
  launch<Body>(stream, {{tiles(arguments.c, Body::kTile, Body::kTile), 1, 1}, Body::kSharedBytes},
               arguments);
}

template <typename T>
void launch_mma(kernels::Stream& stream, const MatrixProduct& product) {
  if (product.a_transposed && product.b_transposed)
    launch_product<MmaProduct<T, false, true>, T, T>(stream, product);
  else if (product.a_transposed)
    launch_product<MmaProduct<T, false, false>, T, T>(stream, product);
  else if (product.b_transposed)
    launch_product<MmaProduct<T, true, true>, T, T>(stream, product);
  else
    launch_product<MmaProduct<T, true, false>, T, T>(stream, product);
}

}  // namespace

void tiled_product(kernels::Stream& stream, const MatrixProduct& product) {
  check_extents(product);
  with_float_type(product.a.dtype(), [&](auto a) {
    with_float_type(product.b.dtype(), [&](auto b) {
      using A = decltype(a);
      using B = decltype(b);
      if constexpr (std::is_same_v<A, B> && sizeof(A) == 2)
        if (whole_chunks(product.a) && whole_chunks(product.b))
          return launch_mma<A>(stream, product);
      launch_product<TiledProduct<A, B>, A, B>(stream, product);
    });
  });
}

}  // namespace strata::cuda

// Implements kernels/ops/linear.h on CUDA: three matrix products, and sums of columns.
#include "kernels/ops/linear.h"

#include "core/check.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/operation_products.h"
#include "kernels/cuda/rows.cuh"

namespace strata::cuda {
namespace {

template <typename T>
struct PartialArguments {
  RowPointer<const T> in;
  float* partial;  ///< [strips, cols]
  std::int64_t rows, cols;
};

/// Sums the columns of one strip of rows: the lanes of a warp take packs side by side, the warps
/// take rows in turn; then the warps' sums are added in order. It reads each element once and
/// writes 4 / kStripRows bytes for it, so reading is the bound.
template <typename T, int N>
struct PartialColumnSums {
  static constexpr int kWarps = 8;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kCols = kWarp * N;  ///< columns of a block
  static constexpr int kRowsOfWarp = static_cast<int>(kStripRows) / kWarps;
  static constexpr int kBatch = 4;  ///< packs under way per thread
  static constexpr std::int64_t kSharedBytes = kWarps * kCols * sizeof(float);
  static_assert(kRowsOfWarp % kBatch == 0);

  static STRATA_DEVICE void run(const PartialArguments<T>& a) {
    const std::int64_t first_col = std::int64_t{block().y} * kCols;
    const std::int64_t col = first_col + lane() * N;
    const std::int64_t first_row = std::int64_t{block().x} * kStripRows + warp();
    float sums[N] = {};
    if (col < a.cols) {
#pragma unroll 1
      for (int i = 0; i < kRowsOfWarp; i += kBatch) {
        Pack<T, N> packs[kBatch] = {};
#pragma unroll
        for (int j = 0; j < kBatch; ++j) {
          const std::int64_t row = first_row + (i + j) * kWarps;
          if (row < a.rows) packs[j] = load<N>(a.in.data + row * a.in.stride + col);
        }
#pragma unroll
        for (int j = 0; j < kBatch; ++j)
#pragma unroll
          for (int c = 0; c < N; ++c) sums[c] += to_float(packs[j].v[c]);
      }
    }
    // Column c of lane l lies at 32 c + l, so that lanes write to different banks.
    auto* shared = reinterpret_cast<float*>(shared_memory());
#pragma unroll
    for (int c = 0; c < N; ++c) shared[warp() * kCols + c * kWarp + lane()] = sums[c];
    sync_block();
    for (int c = thread(); c < kCols && first_col + c < a.cols; c += kThreads) {
      const int at = c % N * kWarp + c / N;
      float sum = shared[at];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) sum += shared[w * kCols + at];
      a.partial[std::int64_t{block().x} * a.cols + first_col + c] = sum;
    }
  }
};

template <typename T>
struct FinalArguments {
  const float* partial;
  T* out;
  std::int64_t strips, cols;
};

/// Adds up the partial sums of 32 columns.
template <typename T>
struct FinalColumnSums {
  static constexpr int kThreads = ColumnSum::kThreads;
  static constexpr std::int64_t kSharedBytes = ColumnSum::kSharedBytes;

  static STRATA_DEVICE void run(const FinalArguments<T>& a) {
    const std::int64_t col = std::int64_t{block().x} * kWarp + lane();
    const bool there = col < a.cols;
    const double sum = ColumnSum::of(a.partial + col, a.cols, a.strips, there);
    if (warp() == 0 && there) a.out[col] = from_float<T>(static_cast<float>(sum));
  }
};

/// True if each row is whole packs of `elements`, each aligned to its size.
bool columns_fit(const kernels::Tensor& matrix, int elements) {
  const auto bytes = static_cast<std::uintptr_t>(elements * size_of(matrix.dtype()));
  return matrix.cols() % elements == 0 && matrix.row_stride() % elements == 0 &&
         reinterpret_cast<std::uintptr_t>(matrix.data) % bytes == 0;
}

template <typename T, int N>
void launch_partial(kernels::Stream& stream, const kernels::Tensor& in, float* partial) {
  using Body = PartialColumnSums<T, N>;
  const auto across = static_cast<std::uint32_t>((in.cols() + Body::kCols - 1) / Body::kCols);
  launch<Body>(
      stream,
      {{static_cast<std::uint32_t>(column_strips(in.rows())), across, 1}, Body::kSharedBytes},
      PartialArguments<T>{rows_of<const T>(in), partial, in.rows(), in.cols()});
}

}  // namespace

void linear(kernels::Stream& stream, const kernels::KernelCall& call) {
  matrix_product(stream, linear_product(call), call.workspace);
}

void linear_backward_input(kernels::Stream& stream, const kernels::KernelCall& call) {
  matrix_product(stream, linear_backward_input_product(call), call.workspace);
}

void linear_backward_weight(kernels::Stream& stream, const kernels::KernelCall& call) {
  matrix_product(stream, linear_backward_weight_product(call), call.workspace);
}

void linear_backward_bias(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &dy = call.inputs[0], &dbias = call.outputs[0];
  auto* partial = reinterpret_cast<float*>(call.workspace.data());
  STRATA_CHECK(static_cast<std::int64_t>(call.workspace.size()) >= column_sums_bytes(dy.type));
  with_float_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    // Both give the same bits: they differ in which thread adds a column, not in the order.
    if (columns_fit(dy, kWide))
      launch_partial<T, kWide>(stream, dy, partial);
    else
      launch_partial<T, 1>(stream, dy, partial);
  });
  with_float_type(dbias.dtype(), [&](auto element) {
    using T = decltype(element);
    using Body = FinalColumnSums<T>;
    const auto across = static_cast<std::uint32_t>((dy.cols() + kWarp - 1) / kWarp);
    launch<Body>(stream, {{across, 1, 1}, Body::kSharedBytes},
                 FinalArguments<T>{partial, dbias.row<T>(), column_strips(dy.rows()), dy.cols()});
  });
}

}  // namespace strata::cuda

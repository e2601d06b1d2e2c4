// The last step of sums over rows: one block adds the partial sums of 32 columns, in one order.
#pragma once

#include "kernels/cuda/device.cuh"

namespace strata::cuda {

/// Runs in a block of kThreads threads; each lane of a warp has a column.
struct ColumnSum {
  static constexpr int kWarps = 16;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr std::int64_t kSharedBytes = kThreads * sizeof(double);

  /// Sums partial[i * stride], i in [0, count), for this lane's column, if it is `there`: each warp
  /// adds every kWarps-th in order, then the warps' sums are added in order, all in fp64. All
  /// threads call it; the first warp gets the sum, the others 0.
  static STRATA_DEVICE double of(const float* partial, std::int64_t stride, std::int64_t count,
                                 bool there) {
    double sum = 0;
    if (there)
#pragma unroll 8
      for (std::int64_t i = warp(); i < count; i += kWarps)
        sum += static_cast<double>(partial[i * stride]);
    auto* shared = reinterpret_cast<double*>(shared_memory());
    shared[thread()] = sum;
    sync_block();
    if (warp() != 0) return 0;
    for (int w = 1; w < kWarps; ++w) sum += shared[w * kWarp + lane()];
    return sum;
  }
};

}  // namespace strata::cuda

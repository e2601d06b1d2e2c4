// Implements kernels/ops/head_loss.h on CUDA. Logits are stored in the type of x, a chunk of rows
// at a time. Their gradient, which the products of dW and dx read, takes their place.
#include "kernels/ops/head_loss.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/operation_products.h"

namespace strata::cuda {
namespace {

template <typename T>
struct RowArguments {
  T* logits;
  std::int64_t stride;
  const std::int32_t* targets;
  const float* scale;
  double* losses;
  std::int32_t vocabulary;
};

/// Computes the loss of one row of logits per block and, when training, replaces the logits by
/// their gradient. It reads the row for its largest value and sum, then again, from the end, for
/// the gradient, since what was read last is still in the L2 cache. So device memory sees one read
/// and one write per logit (evaluation: one read), which is the bound.
template <typename T, int kBlock, bool kTrain>
struct RowLoss {
  static constexpr int kThreads = kBlock;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kPack = static_cast<int>(16 / sizeof(T));
  static constexpr int kBatch = 2;  ///< packs under way per thread
  /// The values that warps exchange.
  struct Shared {
    float largest[kWarps];
    double sums[kWarps];
  };
  static constexpr std::int64_t kSharedBytes = sizeof(Shared);
  /// A number below every logit that counts. It is finite, since differences of infinities are NaN.
  static constexpr float kLowest = -3.4e38F;

  /// The largest of the values that a thread has seen, and the sum of e^(value - largest).
  struct Running {
    float largest = kLowest;
    float sum = 0;
  };

  static STRATA_DEVICE void add(Running& running, const Pack<T, kPack>& pack, int col, int end) {
    float values[kPack];
    float largest = running.largest;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      values[i] = col + i < end ? to_float(pack.v[i]) : kLowest;
      largest = fmaxf(largest, values[i]);
    }
    float sum = running.sum * expf(running.largest - largest);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum += expf(values[i] - largest);
    running = {largest, sum};
  }

  /// Combines the threads' values to those of the whole row, in one fixed order.
  static STRATA_DEVICE void reduce(const Running& mine, float& largest, double& sum) {
    auto& shared = *reinterpret_cast<Shared*>(shared_memory());
    largest = mine.largest;
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2)
      largest = fmaxf(largest, shuffle_xor(largest, mask));
    if (lane() == 0) shared.largest[warp()] = largest;
    sync_block();
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.largest[w]);
    sum = static_cast<double>(mine.sum) * static_cast<double>(expf(mine.largest - largest));
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane() == 0) shared.sums[warp()] = sum;
    sync_block();
    sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared.sums[w];
  }

  static STRATA_DEVICE void run(const RowArguments<T>& a) {
    const std::int64_t row = block().x;
    T* logits = a.logits + row * a.stride;
    const std::int32_t target = a.targets[row];
    const int packs = static_cast<int>(a.stride / kPack);
    if (target < 0) {
      if (thread() == 0) a.losses[row] = 0;
      if constexpr (kTrain)
        for (int p = thread(); p < packs; p += kThreads)
          store<kPack>(logits + p * kPack, Pack<T, kPack>{});
      return;
    }
    const int valid = (a.vocabulary + kPack - 1) / kPack;
    Running running;
    for (int first = thread(); first < valid; first += kBatch * kThreads) {
      Pack<T, kPack> batch[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
        if (first + j * kThreads < valid)
          batch[j] = load<kPack>(static_cast<const T*>(logits) + (first + j * kThreads) * kPack);
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
        if (first + j * kThreads < valid)
          add(running, batch[j], (first + j * kThreads) * kPack, a.vocabulary);
    }
    // The target's logit is read before the barriers of reduce(); later it may be a gradient.
    const bool known = target < a.vocabulary;
    const float own = known ? to_float(logits[target]) : std::numeric_limits<float>::quiet_NaN();
    float largest;
    double sum;
    reduce(running, largest, sum);
    if (thread() == 0)
      a.losses[row] = static_cast<double>(largest) + log(sum) - static_cast<double>(own);
    if constexpr (kTrain) {
      const float factor = static_cast<float>(static_cast<double>(a.scale[0]) / sum);
      write_gradient(a, logits, packs, largest, factor, target);
    }
  }

  static STRATA_DEVICE void write_gradient(const RowArguments<T>& a, T* logits, int packs,
                                           float largest, float factor, std::int32_t target) {
    const float scale = a.scale[0];
    for (int first = packs - 1 - thread(); first >= 0; first -= kBatch * kThreads) {
      Pack<T, kPack> batch[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
        if (first - j * kThreads >= 0)
          batch[j] = load<kPack>(static_cast<const T*>(logits) + (first - j * kThreads) * kPack);
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int col = (first - j * kThreads) * kPack;
        if (col < 0) continue;
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          float gradient = expf(to_float(batch[j].v[i]) - largest) * factor;
          if (col + i == target) gradient -= scale;
          batch[j].v[i] = from_float<T>(col + i < a.vocabulary ? gradient : 0.0F);
        }
        store<kPack>(logits + col, batch[j]);
      }
    }
  }
};

struct SumArguments {
  const double* losses;
  const float* scale;
  double* loss;
  std::int64_t rows;
};

/// Computes the loss, scale[1] times the sum of the row losses, in one block: each thread adds its
/// rows in order, then the sums are added in a binary tree.
struct SumLosses {
  static constexpr int kThreads = 512;
  static constexpr std::int64_t kSharedBytes = kThreads * sizeof(double);
  static STRATA_DEVICE void run(const SumArguments& a) {
    auto* sums = reinterpret_cast<double*>(shared_memory());
    double sum = 0;
#pragma unroll 4
    for (std::int64_t row = thread(); row < a.rows; row += kThreads) sum += a.losses[row];
    sums[thread()] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      sync_block();
      if (thread() < half) sums[thread()] += sums[thread() + half];
    }
    if (thread() == 0) *a.loss = static_cast<double>(a.scale[1]) * sums[0];
  }
};

/// Rows of at most this many columns take one warp; most of 1,024 threads would only wait there.
/// The rows of all blocks that run at once then still fit the L2 cache.
constexpr std::int64_t kColumnsOfWarps = 4096;

template <typename T, bool kTrain>
void launch_rows(kernels::Stream& stream, std::int64_t rows, const RowArguments<T>& arguments) {
  const auto launch_blocks = [&]<typename Body>(Body) {
    launch<Body>(stream, {{static_cast<std::uint32_t>(rows), 1, 1}, Body::kSharedBytes}, arguments);
  };
  if (arguments.stride <= kColumnsOfWarps)
    launch_blocks(RowLoss<T, kWarp, kTrain>{});
  else
    launch_blocks(RowLoss<T, 1024, kTrain>{});
}

/// Runs head_loss (kTrain) or head_loss_eval.
template <typename T, bool kTrain>
void run_head(kernels::Stream& stream, const kernels::KernelCall& call) {
  const std::int64_t rows = call.inputs[0].rows();
  const auto* targets = call.inputs[2].row<const std::int32_t>();
  const auto* scale = call.inputs[3].row<const float>();
  const HeadChunks chunks = head_chunks(call.inputs[0].type, call.inputs[1].type);
  STRATA_CHECK(static_cast<std::int64_t>(call.workspace.size()) >= chunks.total_bytes,
               call.workspace.size(), chunks.total_bytes);
  auto* losses = reinterpret_cast<double*>(call.workspace.data() + chunks.row_losses);
  const auto rest = call.workspace.subspan(static_cast<std::size_t>(chunks.total_bytes));
  const auto vocabulary = static_cast<std::int32_t>(call.attributes.integer("vocabulary"));

  for (std::int64_t i = 0; i < chunks.chunks; ++i) {
    const HeadChunk chunk(call, chunks, i);
    matrix_product(stream, chunk.forward(), rest);
    launch_rows<T, kTrain>(stream, chunk.x.rows(),
                           {chunk.logits.row<T>(), chunks.logits_stride, targets + chunk.first,
                            scale, losses + chunk.first, vocabulary});
    if constexpr (kTrain) {
      matrix_product(stream, chunk.weight_gradient(call.outputs[2]), rest);
      matrix_product(stream, chunk.input_gradient(call.outputs[1]), rest);
    }
  }
  launch<SumLosses>(stream, {{1, 1, 1}, SumLosses::kSharedBytes},
                    SumArguments{losses, scale, call.outputs[0].row<double>(), rows});
}

}  // namespace

void head_loss(kernels::Stream& stream, const kernels::KernelCall& call) {
  with_float_type(call.inputs[0].dtype(),
                  [&](auto element) { run_head<decltype(element), true>(stream, call); });
}

void head_loss_eval(kernels::Stream& stream, const kernels::KernelCall& call) {
  with_float_type(call.inputs[0].dtype(),
                  [&](auto element) { run_head<decltype(element), false>(stream, call); });
}

}  // namespace strata::cuda

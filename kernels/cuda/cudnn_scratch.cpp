#include "kernels/cuda/cudnn_scratch.h"

#include <algorithm>

#include "core/round_up.h"

namespace strata::cuda {
namespace {

/// A batch is split over calls of cuDNN until the scratch of each is at most this. At 1,024
/// positions that is 256 heads of samples in a call, still thousands of blocks.
constexpr std::int64_t kModerateBytes = std::int64_t{512} << 20;
/// The largest scratch that a single sample may take.
constexpr std::int64_t kMostBytes = std::int64_t{1536} << 20;
constexpr std::int64_t kPadding = 1024;  // between and after cuDNN's own buffers

}  // namespace

std::int64_t cudnn_scratch_bytes(const AttentionProblem& p, std::int64_t samples,
                                 int architecture) {
  if (!p.backward) return kPadding;
  const std::int64_t rows = samples * p.heads * p.sequence;
  const bool grouped = p.heads != p.kv_heads;
  const std::int64_t row_sums = 4 * rows;
  // The bytes of one 16-bit gradient per query head (dK or dV), before groups are added up.
  const std::int64_t per_head = 2 * rows * p.head_size;
  const std::int64_t tiles = round_up(p.sequence, 128);
  const std::int64_t probabilities =
      2 * samples * p.heads * tiles * tiles + (grouped ? 2 * per_head : 0);
  const std::int64_t sums_in_fp32 =
      (grouped ? 4 * per_head : 0) + (p.head_size > 128 ? 2 * per_head : 0);
  const bool blackwell = architecture / 10 == 10, other = architecture != 0 && !blackwell;
  const std::int64_t most = other       ? probabilities
                            : blackwell ? sums_in_fp32
                                        : std::max(probabilities, sums_in_fp32);
  return row_sums + most + kPadding;
}

std::int64_t cudnn_samples(const AttentionProblem& p, int architecture) {
  if (!p.backward) return p.batch;
  for (std::int64_t samples = p.batch; samples > 1; --samples)
    if (p.batch % samples == 0 && cudnn_scratch_bytes(p, samples, architecture) <= kModerateBytes)
      return samples;
  return cudnn_scratch_bytes(p, 1, architecture) <= kMostBytes ? 1 : 0;
}

std::int64_t cudnn_workspace_bytes(const AttentionProblem& p, int architecture) {
  const std::int64_t samples = cudnn_samples(p, architecture);
  return samples == 0 ? 0 : cudnn_scratch_bytes(p, samples, architecture) + kCudnnAlignment;
}

}  // namespace strata::cuda

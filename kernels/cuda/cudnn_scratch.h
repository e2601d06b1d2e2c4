// Scratch of attention in cuDNN, known without the library: planning asks here.
#pragma once

#include "kernels/cuda/attention_problem.h"

namespace strata::cuda {

/// Alignment of the workspace inside what a call has, bytes.
inline constexpr std::int64_t kCudnnAlignment = 256;

/// Samples that one call of cuDNN takes: forward the batch; backward its largest divisor whose
/// scratch is moderate. 0 when even one sample needs too much: our own kernels need next to
/// nothing. `architecture`: 90 for sm_90; 0 when unknown.
std::int64_t cudnn_samples(const AttentionProblem& problem, int architecture);

/// Bytes of workspace that cuDNN asks for at most for `samples` samples. Its deterministic backward
/// pass keeps dP of all queries and keys before it adds up dQ; sm_100 does not need that.
std::int64_t cudnn_scratch_bytes(const AttentionProblem& problem, std::int64_t samples,
                                 int architecture);

/// Bytes that a call of ours must have for cuDNN to run it; 0 when cudnn_samples is 0.
std::int64_t cudnn_workspace_bytes(const AttentionProblem& problem, int architecture);

}  // namespace strata::cuda

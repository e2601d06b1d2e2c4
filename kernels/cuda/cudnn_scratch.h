// The scratch of attention in cuDNN, computed without the library, for planning.
#pragma once

#include "kernels/cuda/attention_problem.h"

namespace strata::cuda {

/// Alignment in bytes of cuDNN's workspace within the workspace of a call.
inline constexpr std::int64_t kCudnnAlignment = 256;

/// The number of samples that one call of cuDNN takes: in the forward pass the whole batch, in the
/// backward pass its largest divisor whose scratch is moderate. 0 if one sample needs too much;
/// then our own kernels run, which need little. `architecture` is 90 for sm_90, 0 when unknown.
std::int64_t cudnn_samples(const AttentionProblem& problem, int architecture);

/// The bytes of workspace that cuDNN needs at most for `samples` samples. Its deterministic
/// backward pass stores dP of all queries and keys before it adds up dQ, except on sm_100.
std::int64_t cudnn_scratch_bytes(const AttentionProblem& problem, std::int64_t samples,
                                 int architecture);

/// The bytes of workspace with which cuDNN can run a call of ours; 0 when cudnn_samples is 0.
std::int64_t cudnn_workspace_bytes(const AttentionProblem& problem, int architecture);

}  // namespace strata::cuda

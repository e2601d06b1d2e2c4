// Causal self-attention without a T x T tensor: it works on tiles of queries and keys with an
// online softmax, and the backward pass makes probabilities again from the saved log-sum-exp.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// q A [N,Hq,D], k A [N,Hkv,D], v A [N,Hkv,D] (row-strided views; Hq a multiple of Hkv, D <= 256),
/// rng i64 [2 + B]? (when p > 0) -> o A [N,Hq,D], lse f32 [B,Hq,T], natural logarithm. Query head h
/// reads key head h / (Hq / Hkv). Attributes sequence (T), scale (> 0), p (0 when absent), key.
/// The probability of (h, query, key) has random position (h T + query) * round_up(T, 4) + key.
const Operation& attention_operation();
/// do, q, k, v, o, lse, rng? -> dq, dk, dv, which may be strided views. Sums over queries run in
/// order of head, then position; sums over keys in order of position.
const Operation& attention_backward_operation();

constexpr std::int64_t kAttentionMaxHeadSize = 256;

}  // namespace strata::kernels

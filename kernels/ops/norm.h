// Layer norm and RMS norm over the last dimension, alone or fused with the residual addition.
// Attribute rms: 0 (x - mean) / std * weight + bias, 1 x / rms * weight. The variance is biased and
// taken around the mean (two passes). Vectors of C elements: one per row of [N,C], H per row of
// [N,H,C] (the norm of queries and keys by head).
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,C] or [N,H,C], weight P [C], bias P [C]? -> y A like x, stats f32 [N,2] or [N,H,2] (mean,
/// zero for RMS; 1 / sqrt(variance + eps)). Attributes eps, rms.
const Operation& norm_operation();
/// dy, x, weight, stats, dsum? (added to dx) -> dx like x, dweight [C], dbias [C]? (attribute bias
/// = 1). Attributes rms, bias, gradient_dtype (of dweight and dbias). dx may take dy's storage.
const Operation& norm_backward_operation();
/// x A [N,C], delta A [N,C], weight P [C], bias P [C]? (attribute bias = 1), rng i64 [2 + B]? (when
/// p > 0) -> sum = x + dropout(delta), y = norm(sum), stats. Bit for bit residual_add, then norm.
/// Attributes eps, rms, bias, p, key, sequence.
const Operation& residual_norm_operation();

/// Returns how many vectors norm_backward adds up to one partial sum of dweight and of dbias; it
/// depends on shapes alone.
std::int64_t norm_chunk_vectors(std::int64_t columns);

}  // namespace strata::kernels

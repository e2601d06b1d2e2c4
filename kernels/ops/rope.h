// Rotary position embedding: the table of cosines and sines, and the rotation.
#pragma once

#include <span>

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Attribute `scaling` of rope_table: how frequencies are stretched beyond the trained context.
enum class RopeScalingKind { none = 0, linear = 1, llama3 = 2, yarn = 3 };

/// -> f32 [T, D]: cosines in columns [0, D/2), sines in [D/2, D). Attributes sequence (T),
/// head_size (D, even), theta, scaling (0 when absent); factor (linear, llama3, yarn); low, high,
/// original (llama3: low_freq_factor, high_freq_factor, original_max_position_embeddings);
/// original, beta_fast (32), beta_slow (1), attention_factor (0: 0.1 ln(factor) + 1), truncate (1)
/// (yarn). Computed in fp64, rounded once.
const Operation& rope_table_operation();

/// x A [N,H,D], table f32 [T,D] -> A [N,H,D], which may take x's storage. Row n is at position
/// n % sequence (<= T). With c = cos, s = sin of i < D/2:
/// y[i] = x[i] c - x[i + D/2] s, y[i + D/2] = x[i + D/2] c + x[i] s; inverse = 1 negates s.
const Operation& rope_operation();

/// Fills the angular frequencies of the head_size / 2 pairs and returns the factor on cosines and
/// sines, as transformers' modeling_rope_utils computes them. Takes the attributes of rope_table.
double rope_frequencies(const Attributes& attributes, std::span<double> frequencies);

}  // namespace strata::kernels

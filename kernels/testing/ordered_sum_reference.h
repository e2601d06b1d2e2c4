// ordered_sum for one element, as its definition says.
#pragma once

#include <bit>
#include <span>

#include "kernels/device/tensor.h"
#include "kernels/math/float16.h"

namespace strata::kernels {

/// Returns what `value` becomes on a wire of this type.
inline float through_wire(float value, DType wire) {
  if (wire == DType::bf16) return bf16_to_f32(f32_to_bf16(value));
  if (wire == DType::f16) return f16_to_f32(f32_to_f16(value));
  return value;
}

/// Adds in the binary tree over the next power of two: the left half is full, missing leaves
/// skipped.
inline float tree_sum_reference(std::span<const float> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const std::size_t left = std::bit_ceil(leaves.size()) / 2;
  return tree_sum_reference(leaves.first(left)) + tree_sum_reference(leaves.subspan(left));
}

}  // namespace strata::kernels

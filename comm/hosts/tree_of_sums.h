// Finishes the tree of sums of a reduce_scatter from parts of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/partial_sums.h"
#include "core/dtype.h"

namespace strata::comm {

/// A subtree whose sum follows from `parts`: the contributions of its leaves, rounded to
/// `wire_type` when they are added, or one part that is the sum already (both types fp32).
struct SumPart {
  Subtree subtree;
  std::span<const std::byte* const> parts;
  DType input_type = DType::f32;
  DType wire_type = DType::f32;
};

/// Computes out[i] for i in [0, count) from elements `begin` + i of the parts: the tree's sum over
/// `world` leaves, times `scale`, with the bits of kernels::ordered_sum over all contributions.
/// `sums` are in order and cover all leaves. `out` may be these elements of one fp32 contribution.
void sum_tree(std::span<const SumPart> sums, int world, std::int64_t begin, std::int64_t count,
              float scale, float* out);

}  // namespace strata::comm

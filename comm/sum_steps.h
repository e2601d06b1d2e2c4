// Finishing the tree of sums of a reduce_scatter from sums of its subtrees, as a few ordered sums
// over whole arrays: the way of devices, where each is one kernel.
#pragma once

#include <span>
#include <vector>

#include "comm/partial_sums.h"
#include "core/dtype.h"

namespace strata::comm {

/// An ordered sum (kernels/cpu/ordered_sum.h) of operands of one type. Operand i is part i if there
/// are more than i parts, else slot i - parts. There are at most kernels::kMaxContributions.
struct SumStep {
  static constexpr int kResult = -1;
  std::vector<int> operands;
  DType type = DType::f32;
  int slot = kResult;  ///< where the sum goes; a slot may be one of the operands
};

struct SumSteps {
  std::vector<SumStep> steps;  ///< the last one alone gives the result
  int slots = 0;               ///< fp32 arrays that steps need in between
};

/// Returns the steps that give the bits of the whole tree. `parts` are in order and cover the
/// leaves of a world of at least two parts; a part is its subtree's sum in `sum_type` of it.
SumSteps sum_steps(std::span<const Subtree> parts, int world, DType wire_type);

}  // namespace strata::comm

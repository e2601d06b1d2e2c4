// Adds a gradient's squares to this rank's part of the global gradient norm, exactly.
//
// inputs   word i64 [AgreedWord::kWords], gradient fp32, bf16 or fp16 (any shape, no gaps)
// attributes  first (default 0): 1 starts from an all-zero word, whatever the operand holds
// outputs  word (in place)
//
// The gradient is cut into cells of 1,024 elements from its start, which lies on a cell border of
// the unit's flat space. A cell's sum of squares is computed in fp64 over 32 lanes: lane l adds
// elements l, l + 32, ... in order (squares of fp32 are exact in fp64), then lanes l and l + 16 are
// added, l and l + 8, ..., l and l + 1. Elements missing from the last cell count as zero. The sums
// are added exactly (wide_sum.h), so the total depends on nothing but the cells: not on shards,
// stage or threads. A cell with a NaN or infinity counts in kNonFinite instead.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

inline constexpr std::int64_t kNormCell = 1024;
inline constexpr int kNormLanes = 32;

const Operation& norm_squares_operation();

}  // namespace strata::kernels

// Adds a gradient to the sum over micro-steps.
//
// inputs   sum and x, each fp32, bf16 or fp16, of the same shape; rows may have gaps
// attributes  scale (default 1)
// outputs  scale * (sum + x) (in place), of the type of sum: one fp32 addition and one fp32
//          multiplication per element, then rounded to nearest even
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& accumulate_operation();

}  // namespace strata::kernels

// Adding micro-steps' gradients into an fp32 sum.
//
// inputs   sum fp32, x fp32, bf16 or fp16 of the same shape; rows may have gaps
// outputs  sum + x (in place), one fp32 addition per element
#pragma once

#include "kernels/operation.h"

namespace strata::kernels {

const Operation& accumulate_operation();

}  // namespace strata::kernels

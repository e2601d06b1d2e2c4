// Adding micro-steps' gradients up.
//
// inputs   sum and x, each fp32, bf16 or fp16, of the same shape; rows may have gaps
// outputs  sum + x (in place), of the type of sum: one fp32 addition per element, then rounded to
//          nearest even
#pragma once

#include "kernels/operation.h"

namespace strata::kernels {

const Operation& accumulate_operation();

}  // namespace strata::kernels

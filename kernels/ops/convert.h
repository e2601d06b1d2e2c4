// Element type conversion.
//
// inputs   x fp32, bf16 or fp16, any shape, rows may have gaps
// attributes  dtype: of the output (fp32, bf16 or fp16); master (default 0)
// outputs  y, the shape of x without gaps
//
// Rounds to nearest, ties to even; with master = 1, fp32 to bf16 rounds ties away from zero (see
// float16.h). Between bf16 and fp16 it goes by way of fp32 (exact) and rounds once.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& convert_operation();

}  // namespace strata::kernels

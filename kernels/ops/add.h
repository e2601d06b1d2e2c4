// Element-wise sum.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// a A [N,...], b A [N,...] -> a + b A, in fp32 arithmetic; may take a's storage.
const Operation& add_operation();

}  // namespace strata::kernels

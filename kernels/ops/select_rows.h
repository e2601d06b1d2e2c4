// Copies some rows, such as the last position of each sample when generating.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,H], index i32 [R] (each in [0, N)) -> A [R,H]. Not differentiable.
const Operation& select_rows_operation();

}  // namespace strata::kernels

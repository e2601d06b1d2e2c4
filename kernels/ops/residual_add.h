// Adds to the residual stream, with dropout of what is added.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,C], delta A [N,C], rng i64 [2 + B] (present when p > 0) -> x + dropout(delta) A [N,C],
/// which may take x's storage. Attributes p (0 when absent), key, sequence.
const Operation& residual_add_operation();

}  // namespace strata::kernels

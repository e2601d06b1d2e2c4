// Dropout from the counter-based generator: the mask is made again in the backward pass.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,C], rng i64 [2 + B] -> A [N,C], which may take x's storage. Attributes p in [0, 1), key,
/// sequence. Element (n, c) has position (n % sequence) * C + c in its sample (philox.h). Its
/// gradient is the same operation on dy.
const Operation& dropout_operation();

}  // namespace strata::kernels

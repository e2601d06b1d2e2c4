// y = x * Phi(x), exactly (attribute tanh = 0, through erf) or in GPT-2's form (tanh = 1):
// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,F] -> y A [N,F].
const Operation& gelu_operation();
/// dy A [N,F], x A [N,F] -> dx A [N,F], which may take dy's storage.
const Operation& gelu_backward_operation();

}  // namespace strata::kernels

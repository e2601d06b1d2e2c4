// silu(gate) * up of a packed pair (gate first), the activation of the Llama family's MLP.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// x A [N,2F] (gate, then up) -> A [N,F].
const Operation& swiglu_operation();
/// dy A [N,F], x A [N,2F] -> dx A [N,2F], which may take x's storage.
const Operation& swiglu_backward_operation();

}  // namespace strata::kernels

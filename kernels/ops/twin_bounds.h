// Bounds on how far a device's result of an operation may lie from the CPU's for the same inputs.
#pragma once

#include <string_view>

#include "core/dtype.h"

namespace strata::kernels {

/// Returns the bound of |device - cpu| / |cpu| (L2 norms over one output of type `output`). 0 means
/// equal bits: operations promise them if no backend chooses the order of their additions, or if
/// they add exactly. `first_input` is the type of the operation's first operand: the losses of
/// head_loss come from logits that some backends keep in it.
double twin_bound(std::string_view operation, DType output, DType first_input);

}  // namespace strata::kernels

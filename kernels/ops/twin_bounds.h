// How far a device's result of an operation may lie from the CPU's for the same inputs.
#pragma once

#include <string_view>

#include "core/dtype.h"

namespace strata::kernels {

/// Bound of |device - cpu| / |cpu| (L2 norms over one output of type `output`). 0: equal bits,
/// which all operations promise that add nothing up in an order of their own, or add exactly.
/// `first_input` is the type of the operation's first operand: the losses of head_loss come from
/// logits that some backends keep in it.
double twin_bound(std::string_view operation, DType output, DType first_input);

}  // namespace strata::kernels

// How far a device's result of an operation may lie from the CPU's for the same inputs.
#pragma once

#include <string_view>

#include "core/dtype.h"

namespace strata::kernels {

/// Bound of |device - cpu| / |cpu| (L2 norms over one output of type `dtype`). 0: equal bits, which
/// all operations promise that add nothing up in an order of their own, or add exactly.
double twin_bound(std::string_view operation, DType dtype);

}  // namespace strata::kernels

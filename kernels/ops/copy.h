// Bytes from one place to another, type unchanged.
//
// inputs   x, any type and shape
// outputs  y, the same
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& copy_operation();

}  // namespace strata::kernels

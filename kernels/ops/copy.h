// Copies a tensor to another place; the type stays.
//
// inputs   x, any type and shape
// outputs  y, the same
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& copy_operation();

}  // namespace strata::kernels

// Zeros.
//
// attributes  dtype, rows, cols (absent: a vector of `rows` elements)
// outputs     zeros [rows, cols] or [rows]; written in a view, gaps between rows are left alone
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& fill_zero_operation();

}  // namespace strata::kernels

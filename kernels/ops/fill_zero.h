// Fills its outputs with zeros.
//
// attributes  dtype, rows of output 0, rows.K of output K where there are more
// outputs     zeros [rows], contiguous; any number of them, so that one launch may fill many
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& fill_zero_operation();

}  // namespace strata::kernels

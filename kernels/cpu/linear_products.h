// Which matrix product each operation of kernels/linear.h is.
#pragma once

#include "kernels/cpu/matmul.h"
#include "kernels/operation.h"

namespace strata::kernels {

MatmulTypes linear_types(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes);
MatmulTypes linear_backward_input_types(TypeSpan inputs, TypeSpan outputs,
                                        const Attributes& attributes);
MatmulTypes linear_backward_weight_types(TypeSpan inputs, TypeSpan outputs,
                                         const Attributes& attributes);

}  // namespace strata::kernels

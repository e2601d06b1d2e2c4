// y = x W^T + b, and its three gradients.
//
// linear                  x A [N,K], W P [M,K] ([K,M] when transposed), bias P [M]?  ->  y A [N,M]
// linear_backward_input   dy A [N,M], W P                                            ->  dx A [N,K]
// linear_backward_weight  dy A [N,M], x A [N,K]      ->  dW G [M,K] ([K,M] when transposed)
// linear_backward_bias    dy A [N,M]                 ->  dbias G [M]
//
// Attributes: transposed (0, 1; default 0); gradient_dtype (a DType number; default the type of dy)
// for the last two. x and dy may have three dimensions, [N,H,D]; outputs then have two. fp32, bf16
// and fp16 in any mix with fp32 sums; the bias has the type of W. Bound: 2 N M K operations.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& linear_operation();
const Operation& linear_backward_input_operation();
const Operation& linear_backward_weight_operation();
const Operation& linear_backward_bias_operation();

/// True if W is stored [K,M].
bool is_transposed(const Attributes& attributes);

}  // namespace strata::kernels

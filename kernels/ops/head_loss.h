// The output head and its cross-entropy in one operation, so that logits [N,V] never exist as a
// whole: those of a chunk of rows are made, used for loss, dx and dW, and overwritten.
//
// head_loss       x A [N,H], W P [V,H], targets i32 [N] (< 0: ignored), scale f32 [2]
//                 ->  loss f64 [1], dx A [N,H], dW G [V,H]
// head_loss_eval  the same inputs  ->  loss f64 [1]
//
// With p = softmax of the first `vocabulary` columns of x W^T, loss = scale[1] * sum over rows of
// -ln p[target]; dx and dW are scale[0] times the derivatives of that sum; rows of dW from
// `vocabulary` on are zero. Attributes: vocabulary (valid columns, <= V); gradient_dtype (default:
// that of W). A target >= vocabulary makes the loss NaN (readers of data refuse such targets). Row
// losses are summed in fp64 in a fixed order. Bound: 6 N V H operations (2 N V H for eval); the
// logits are computed once.
//
// The CPU keeps logits in fp32, rounds their gradient to bf16 if x and W are bf16 and the hardware
// multiplies bf16, and sums dW over chunks in fp32. CUDA stores logits and their gradient in the
// type of x and adds each chunk's fp32 sum to dW in row order: a 16-bit dW is rounded once per
// chunk; chunks are equal parts of at most 2,048 to 4,096 rows.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& head_loss_operation();
const Operation& head_loss_eval_operation();

}  // namespace strata::kernels

// The output head and its cross-entropy in one operation, so that logits [N,V] never exist as a
// whole: they are made for a chunk of rows, used for loss, dx and dW, and overwritten by the next.
//
// head_loss       x A [N,H], W P [V,H], targets i32 [N] (< 0: ignored), scale f32 [2]
//                 ->  loss f64 [1], dx A [N,H], dW G [V,H]
// head_loss_eval  the same inputs  ->  loss f64 [1]
//
// With p = softmax of the first `vocabulary` columns of x W^T, loss = scale[1] * sum over rows of
// -ln p[target]; dx and dW are scale[0] times the derivatives of that sum; rows of dW from
// `vocabulary` on are zero. Attributes: vocabulary (valid columns, <= V); gradient_dtype (default:
// that of W). A target >= vocabulary has no loss and no gradient of its own: readers of data refuse
// it. Row losses are summed in fp64 in a fixed order. Bound: 6 N V H operations (2 N V H for eval);
// the logits are computed once.
//
// On the CPU logits are fp32, their gradient is rounded to bf16 where bf16 products run in
// hardware, as their other operand is, and dW is summed over chunks in fp32. On CUDA logits and
// their gradient are stored in the type of x, and each chunk's fp32 sum is added to dW in row
// order: with a 16-bit gradient type dW is rounded once per chunk of 2,048 to 4,096 rows.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& head_loss_operation();
const Operation& head_loss_eval_operation();

}  // namespace strata::kernels

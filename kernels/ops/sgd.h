// Stochastic gradient descent as in torch.optim.SGD, on one flat range.
//
// inputs   master f32 [n], momentum f32 [n] (only when the attribute momentum > 0),
//          gradient [n] (fp32, bf16 or fp16), control u8 [sizeof(StepControl)]
// attributes  momentum (default 0), dampening (0), nesterov (0), weight_decay (0), parameter_dtype
//             (fp32, bf16 or fp16; absent: no last output)
// outputs  master, momentum (each in place), parameter [n]: the new master, rounded as for adamw
//
// The arithmetic is fp32, element by element, each operation rounded by itself (no fma):
//
//   g = gradient * gradient_factor
//   g = g + weight_decay * p                            only when weight_decay > 0
//   b = g in the first update, momentum * b + (1 - dampening) * g afterwards
//   g = b, or g + momentum * b with nesterov            only when momentum > 0, as the line above
//   p = p - learning_rate * g
//
// Steps run it under the predicate control.apply.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& sgd_operation();

}  // namespace strata::kernels

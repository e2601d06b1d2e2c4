// AdamW (Loshchilov and Hutter, arXiv 1711.05101) and Adam as in torch.optim, on one flat range.
//
// adamw         inputs  master f32 [n], m [n], v [n], gradient [n], control, rng?
//               outputs master, m, v (each in place), parameter [n]?
// adamw_packed  inputs  parameter bf16 [n], remainder i16 [n], m [n], v [n], gradient [n], control,
//                       rng?
//               outputs parameter, remainder, m, v (each in place)
// attributes    beta1, beta2, eps, weight_decay, decoupled (1 AdamW, 0 Adam: decay added to the
//               gradient), parameter_dtype?; key and first when m and v are bf16
//
// Types of the state, rng and the parameter are those of kernels/ops/optimizer_operands.h.
//
// The arithmetic is fp32, element by element, each operation rounded by itself (no fma), so that
// every instruction set, and CUDA without contraction, gives the same bits. `control` has
// gradient_factor, learning_rate and the bias corrections.
//
//   g = gradient * gradient_factor
//   g = g + weight_decay * p              only when decoupled = 0 and weight_decay > 0
//   m = beta1 * m + one_minus_beta1 * g
//   v = beta2 * v + one_minus_beta2 * (g * g)
//   u = step_size * (m / (sqrt(v) / bias_correction2_sqrt + eps))
//   u = u + decay * p                     only when decoupled = 1 and decay > 0
//   p = p - u
//
// torch multiplies p by 1 - learning_rate * weight_decay in fp32. That factor is off by up to half
// a unit in the last place of 1, at every step in the same direction; here p is rounded once.
//
// The scalars one_minus_beta = 1 - beta, decay = learning_rate * weight_decay and step_size =
// learning_rate / bias_correction1 are computed in fp64 from the fp32 fields of `control` and the
// attributes, then rounded to fp32. Steps run it under the predicate control.apply.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& adamw_operation();
const Operation& adamw_packed_operation();

}  // namespace strata::kernels

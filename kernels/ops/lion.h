// Lion (Chen et al., "Symbolic discovery of optimization algorithms", arXiv 2302.06675, algorithm
// 2) on one flat range. Its step is the sign of a mix of gradient and momentum, so every element
// moves by the learning rate. One moment.
//
// lion          inputs  master f32 [n], m [n], gradient [n], control, rng?
//               outputs master, m (in place), parameter [n]?
// lion_packed   inputs  parameter bf16 [n], remainder i16 [n], m [n], gradient [n], control, rng?
//               outputs parameter, remainder, m (in place)
// attributes    beta1 (the paper: 0.9), beta2 (0.99), weight_decay, parameter_dtype?; key and first
//               when m is bf16
//
// Types of the state, rng and the parameter are those of kernels/ops/optimizer_operands.h.
//
// The arithmetic is fp32, element by element, each operation rounded by itself (no fma). `control`
// has gradient_factor and learning_rate; there is no bias correction.
//
//   g = gradient * gradient_factor
//   c = beta1 * m + one_minus_beta1 * g
//   u = learning_rate * sign(c)           sign of either zero is 0, of a NaN that NaN
//   u = u + decay * p                     only when decay > 0
//   p = p - u
//   m = beta2 * m + one_minus_beta2 * g
//
// one_minus_beta = 1 - beta and decay = learning_rate * weight_decay are computed in fp64, then
// rounded to fp32. Decay is always decoupled. Lion wants learning rates 3 to 10 times smaller than
// AdamW's and weight decay larger by the same factor (section 5 of the paper). Steps run it under
// the predicate control.apply.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& lion_operation();
const Operation& lion_packed_operation();

}  // namespace strata::kernels

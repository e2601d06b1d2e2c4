// AdamW and Adam without a master copy: parameter and moments are bf16, 6 bytes per element in all.
//
// inputs   parameter bf16 [n], m bf16 [n], v bf16 [n], gradient bf16 or fp32 [n], control u8
//          [sizeof(StepControl)], rng i64 [2 or more]: seed, step
// attributes  beta1, beta2, eps, weight_decay, decoupled as in adamw.h; key: of the unit that the
//             range is a part of; first (default 0): where in the unit's flat space the range
//             starts
// outputs  parameter, m, v (each in place)
//
// The arithmetic is that of adamw.h, in fp32; it uses the new moments before they are rounded. Then
// each of the three is rounded stochastically by its place in its unit, first + i
// (kernels/math/stochastic_rounding.h). Steps run it under the predicate control.apply.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& adamw_bf16_operation();

}  // namespace strata::kernels

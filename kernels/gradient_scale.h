// By what the loss, and with it every gradient, is multiplied.
//
// inputs   state u8 [sizeof(StepState)], batch f64 [2]: valid targets of this rank's micro-batch
// and
//          micro-steps per step
// outputs  scale f32 [2]: loss_scale / (targets * micro_steps) for gradients, 1 / (targets *
//          micro_steps) for the reported loss; each rounded to fp32 once. Both 0 without any valid
//          target: such a micro-batch contributes nothing instead of 0 * infinity.
#pragma once

#include "kernels/operation.h"

namespace strata::kernels {

const Operation& gradient_scale_operation();

}  // namespace strata::kernels

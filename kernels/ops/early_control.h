// The control of a step before any of its gradients is known: for updates that run after their own
// gradient (docs/adr/0009). At the end of that step `step_control` writes the same bits and
// advances the state.
//
// inputs   state u8 [sizeof(StepState)], as the step before left it
// outputs  control u8 [sizeof(StepControl)]
//
// Attributes are those of step_control (kernels/ops/step_control.h). Throws InvalidArgument where
// something of the gradient enters the control: a norm to clip to, a loss scale, steps that are
// skipped when they are not finite.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& early_control_operation();

}  // namespace strata::kernels

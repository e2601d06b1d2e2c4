// Makes the control of a step before any of its gradients is known, for updates that run as soon as
// their own gradient is ready (docs/adr/0009). At the end of that step `step_control` writes the
// same bits and advances the state.
//
// inputs   state u8 [sizeof(StepState)], as the step before left it
// outputs  control u8 [sizeof(StepControl)]
//
// Attributes are those of step_control (kernels/ops/step_control.h). `infer` throws InvalidArgument
// if the control would depend on the gradient: with clipping, a loss scale, or skipping of steps
// that are not finite.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& early_control_operation();

}  // namespace strata::kernels

// By what the loss, and with it every gradient, is multiplied.
//
// inputs   state u8 [sizeof(StepState)], batch f64 [2]: valid targets of this rank's micro-batch
// and
//          micro-steps per step
// outputs  scale f32 [2]: loss_scale / (targets * micro_steps) for gradients, 1 / (targets *
//          micro_steps) for the reported loss; each rounded to fp32 once. Both 0 without any valid
//          target: such a micro-batch contributes nothing instead of 0 * infinity.
#pragma once

#include "kernels/host_device.h"
#include "kernels/operation.h"
#include "kernels/step_state.h"

namespace strata::kernels {

/// The output.
struct GradientScale {
  float gradients = 0, loss = 0;
};

STRATA_HOST_DEVICE inline GradientScale gradient_scale_of(const StepState& state, double targets,
                                                          double micro_steps) {
  const double divisor = targets * micro_steps;
  if (!(divisor > 0)) return {};
  return {static_cast<float>(state.loss_scale / divisor), static_cast<float>(1 / divisor)};
}

const Operation& gradient_scale_operation();

}  // namespace strata::kernels

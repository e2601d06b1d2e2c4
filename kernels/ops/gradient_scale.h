// Makes the factor of the loss, and so of every gradient. It turns both into means over the valid
// targets of the whole step:
//
//   mean = 1/N sum over targets = 1/L sum over leaves of L/N sum over the leaf's targets
//
// The step has N valid targets and L leaves. A leaf (a rank, or one of its virtual ranks)
// multiplies by L/N here; the sum over leaves is divided by L where it is made (reduction,
// step_control).
//
// inputs   state u8 [sizeof(StepState)], targets i64 [1]: N, over all micro-steps of all leaves
// attributes  leaves (default 1): L
// outputs  scale f32 [2]: loss_scale / (N / L) for gradients, 1 / (N / L) for the reported loss;
//          N / L in fp64, each rounded to fp32 once. Both 0 without any valid target: such a step
//          has a loss of 0 and no gradient instead of 0 * infinity.
#pragma once

#include <cstdint>

#include "kernels/math/host_device.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// The layout of the output.
struct GradientScale {
  float gradients = 0, loss = 0;
};

STRATA_HOST_DEVICE inline GradientScale gradient_scale_of(const StepState& state,
                                                          std::int64_t targets,
                                                          std::int64_t leaves) {
  if (targets <= 0) return {};
  const double divisor = static_cast<double>(targets) / static_cast<double>(leaves);
  return {static_cast<float>(state.loss_scale / divisor), static_cast<float>(1 / divisor)};
}

const Operation& gradient_scale_operation();

}  // namespace strata::kernels

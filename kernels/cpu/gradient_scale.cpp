#include "kernels/ops/gradient_scale.h"

#include <cstring>

#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {

void gradient_scale_kernel(Stream&, const KernelCall& call) {
  StepState state;
  std::memcpy(&state, call.inputs[0].data, sizeof state);
  const GradientScale scale = gradient_scale_of(state, *call.inputs[1].row<const std::int64_t>(),
                                                call.attributes.integer("leaves", 1));
  std::memcpy(call.outputs[0].data, &scale, sizeof scale);
}

}  // namespace strata::kernels

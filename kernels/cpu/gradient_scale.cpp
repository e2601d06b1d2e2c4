#include <cstring>

#include "kernels/cpu/step_kernels.h"
#include "kernels/step_state.h"

namespace strata::kernels {

void gradient_scale_kernel(Stream&, const KernelCall& call) {
  StepState state;
  std::memcpy(&state, call.inputs[0].data, sizeof state);
  const auto* batch = call.inputs[1].row<const double>();
  auto* scale = call.outputs[0].row<float>();
  const double divisor = batch[0] * batch[1];
  scale[0] = divisor > 0 ? static_cast<float>(state.loss_scale / divisor) : 0;
  scale[1] = divisor > 0 ? static_cast<float>(1 / divisor) : 0;
}

}  // namespace strata::kernels

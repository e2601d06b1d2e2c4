#include "kernels/ops/early_control.h"

#include <cstring>

#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/advance_step.h"

namespace strata::kernels {

void early_control_kernel(Stream&, const KernelCall& call) {
  StepState state;
  std::memcpy(&state, call.inputs[0].data, sizeof state);
  const StepControl control = control_ahead(StepRules::from(call.attributes), state);
  std::memcpy(call.outputs[0].data, &control, sizeof control);
}

}  // namespace strata::kernels

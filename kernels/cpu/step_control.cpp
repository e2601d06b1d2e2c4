#include "kernels/ops/step_control.h"

#include <cstring>

#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/advance_step.h"

namespace strata::kernels {

void step_control_kernel(Stream&, const KernelCall& call) {
  StepState state;
  StepControl control;
  StepMetrics metrics;
  std::memcpy(&state, call.inputs[0].data, sizeof state);
  const std::span<const std::int64_t, AgreedWord::kWords> word(
      call.inputs[1].row<const std::int64_t>(), AgreedWord::kWords);
  advance_step(StepRules::from(call.attributes), word, state, control, metrics);
  std::memcpy(call.outputs[0].data, &state, sizeof state);
  std::memcpy(call.outputs[1].data, &control, sizeof control);
  std::memcpy(call.outputs[2].data, &metrics, sizeof metrics);
}

}  // namespace strata::kernels

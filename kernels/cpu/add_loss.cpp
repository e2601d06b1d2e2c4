#include "kernels/ops/add_loss.h"

#include <cstring>

#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
void add_loss_kernel(Stream&, const KernelCall& call) {
  const Tensor& in = call.inputs[0];
  auto* word = call.outputs[0].row<std::int64_t>();
  if (call.outputs[0].data != in.data)
    std::memcpy(word, in.data, AgreedWord::kWords * sizeof(std::int64_t));
  const double loss = *call.inputs[1].row<const double>();
  if (add_loss_units(word[AgreedWord::kLoss], loss, call.attributes.integer("leaves", 1))) return;
  ++word[AgreedWord::kNonFiniteLoss];
  ++word[AgreedWord::kNonFinite];
}

}  // namespace strata::kernels

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/step_kernels.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {
constexpr std::int64_t kLimit = (std::int64_t{1} << 53) - 1;

std::int64_t in_units(double loss) {
  const double units = std::ldexp(loss, 40);
  const auto limit = static_cast<double>(kLimit);
  return std::llrint(std::clamp(units, -limit, limit));
}
}  // namespace

void add_loss_kernel(Stream&, const KernelCall& call) {
  const Tensor& in = call.inputs[0];
  auto* word = call.outputs[0].row<std::int64_t>();
  if (call.outputs[0].data != in.data)
    std::memcpy(word, in.data, AgreedWord::kWords * sizeof(std::int64_t));
  const double loss = *call.inputs[1].row<const double>();
  if (!std::isfinite(loss)) {
    ++word[AgreedWord::kNonFiniteLoss];
    ++word[AgreedWord::kNonFinite];
    return;
  }
  std::int64_t& sum = word[AgreedWord::kLoss];
  sum = std::clamp(sum + in_units(loss), -kLimit, kLimit);
}

}  // namespace strata::kernels

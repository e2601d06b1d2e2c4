// The CPU backend: operation names and the kernels that run them. A new one is one line.
#include <algorithm>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/product_kernels.h"

namespace strata::kernels {
namespace {

struct Entry {
  std::string_view operation;
  Kernel kernel;
};

constexpr Entry kKernels[] = {
    {"head_loss", head_loss_kernel},
    {"head_loss_eval", head_loss_eval_kernel},
    {"linear", linear_kernel},
    {"linear_backward_bias", linear_backward_bias_kernel},
    {"linear_backward_input", linear_backward_input_kernel},
    {"linear_backward_weight", linear_backward_weight_kernel},
};

class CpuKernelTable final : public KernelTable {
 public:
  [[nodiscard]] Kernel find(std::string_view operation) const override {
    const auto* found =
        std::find_if(std::begin(kKernels), std::end(kKernels),
                     [&](const Entry& entry) { return entry.operation == operation; });
    return found == std::end(kKernels) ? nullptr : found->kernel;
  }
};

}  // namespace

const KernelTable& cpu_kernels() {
  static const CpuKernelTable table;
  return table;
}

}  // namespace strata::kernels

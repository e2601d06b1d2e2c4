// The table of the CUDA backend: names of operations and their kernels.
#include "kernels/cuda/cuda_kernels.h"

#include <algorithm>

namespace strata::cuda {
namespace {

struct Entry {
  std::string_view operation;
  kernels::Kernel kernel;
};

constexpr Entry kKernels[] = {
    {"accumulate", accumulate},
    {"add", add},
    {"head_loss", head_loss},
    {"head_loss_eval", head_loss_eval},
    {"initialize", initialize},
    {"linear", linear},
    {"linear_backward_bias", linear_backward_bias},
    {"linear_backward_input", linear_backward_input},
    {"linear_backward_weight", linear_backward_weight},
    {"attention", attention},
    {"attention_backward", attention_backward},
    {"convert", convert},
    {"copy", copy},
    {"dropout", dropout},
    {"embedding", embedding},
    {"embedding_backward", embedding_backward},
    {"fill_zero", fill_zero},
    {"gelu", gelu},
    {"gelu_backward", gelu_backward},
    {"norm", norm},
    {"norm_backward", norm_backward},
    {"position_backward", position_backward},
    {"residual_add", residual_add},
    {"residual_norm", residual_norm},
    {"rope", rope},
    {"rope_table", rope_table},
    {"select_rows", select_rows},
    {"swiglu", swiglu},
    {"swiglu_backward", swiglu_backward},
    {"adamw", adamw},
    {"adamw_8bit", adamw_8bit},
    {"adamw_bf16", adamw_bf16},
    {"adamw_packed", adamw_packed},
    {"lion", lion},
    {"lion_packed", lion_packed},
    {"add_loss", add_loss},
    {"gradient_scale", gradient_scale},
    {"norm_squares", norm_squares},
    {"sgd", sgd},
    {"step_control", step_control},
    {"early_control", early_control},
};

class CudaKernels final : public kernels::KernelTable {
 public:
  [[nodiscard]] kernels::Kernel find(std::string_view operation) const override {
    const auto* found =
        std::find_if(std::begin(kKernels), std::end(kKernels),
                     [&](const Entry& entry) { return entry.operation == operation; });
    return found == std::end(kKernels) ? nullptr : found->kernel;
  }
};

}  // namespace

const kernels::KernelTable& cuda_kernels() {
  static const CudaKernels table;
  return table;
}

}  // namespace strata::cuda

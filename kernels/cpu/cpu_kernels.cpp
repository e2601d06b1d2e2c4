// The CPU backend: operation names and the kernels that run them. A new one is one line.
#include <algorithm>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {
namespace {

struct Entry {
  std::string_view operation;
  Kernel kernel;
};

constexpr Entry kKernels[] = {
    {"accumulate", accumulate_kernel},
    {"adamw", adamw_kernel},
    {"adamw_8bit", adamw_8bit_kernel},
    {"adamw_bf16", adamw_bf16_kernel},
    {"adamw_packed", adamw_packed_kernel},
    {"add", add_kernel},
    {"add_loss", add_loss_kernel},
    {"attention", attention_kernel},
    {"attention_backward", attention_backward_kernel},
    {"convert", convert_kernel},
    {"copy", copy_kernel},
    {"dropout", dropout_kernel},
    {"early_control", early_control_kernel},
    {"embedding", embedding_kernel},
    {"embedding_backward", embedding_backward_kernel},
    {"fill_zero", fill_zero_kernel},
    {"gelu", gelu_kernel},
    {"gelu_backward", gelu_backward_kernel},
    {"gradient_scale", gradient_scale_kernel},
    {"head_loss", head_loss_kernel},
    {"head_loss_eval", head_loss_eval_kernel},
    {"initialize", initialize_kernel},
    {"linear", linear_kernel},
    {"linear_backward_bias", linear_backward_bias_kernel},
    {"linear_backward_input", linear_backward_input_kernel},
    {"linear_backward_weight", linear_backward_weight_kernel},
    {"lion", lion_kernel},
    {"lion_packed", lion_packed_kernel},
    {"norm", norm_kernel},
    {"norm_backward", norm_backward_kernel},
    {"norm_squares", norm_squares_kernel},
    {"position_backward", position_backward_kernel},
    {"residual_add", residual_add_kernel},
    {"residual_norm", residual_norm_kernel},
    {"rope", rope_kernel},
    {"rope_table", rope_table_kernel},
    {"select_rows", select_rows_kernel},
    {"sgd", sgd_kernel},
    {"step_control", step_control_kernel},
    {"swiglu", swiglu_kernel},
    {"swiglu_backward", swiglu_backward_kernel},
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

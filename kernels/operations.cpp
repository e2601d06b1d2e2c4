// Lists every operation, by name. A new one is two lines here: its header and its entry.
#include <algorithm>
#include <array>

#include "core/check.h"
#include "kernels/cpu/workspaces.h"
#include "kernels/cuda/workspaces.h"
#include "kernels/ops/accumulate.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/adamw_8bit.h"
#include "kernels/ops/adamw_bf16.h"
#include "kernels/ops/add.h"
#include "kernels/ops/add_loss.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/early_control.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/fill_zero.h"
#include "kernels/ops/gelu.h"
#include "kernels/ops/gradient_scale.h"
#include "kernels/ops/head_loss.h"
#include "kernels/ops/initialize.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/lion.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/norm_squares.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/residual_add.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/select_rows.h"
#include "kernels/ops/sgd.h"
#include "kernels/ops/step_control.h"
#include "kernels/ops/swiglu.h"

namespace strata::kernels {
namespace {

using Declaration = const Operation& (*)();

constexpr Declaration kOperations[] = {
    accumulate_operation,
    adamw_operation,
    adamw_8bit_operation,
    adamw_bf16_operation,
    adamw_packed_operation,
    add_operation,
    add_loss_operation,
    attention_operation,
    attention_backward_operation,
    convert_operation,
    copy_operation,
    dropout_operation,
    early_control_operation,
    embedding_operation,
    embedding_backward_operation,
    fill_zero_operation,
    gelu_operation,
    gelu_backward_operation,
    gradient_scale_operation,
    head_loss_operation,
    head_loss_eval_operation,
    initialize_operation,
    linear_operation,
    linear_backward_bias_operation,
    linear_backward_input_operation,
    linear_backward_weight_operation,
    lion_operation,
    lion_packed_operation,
    norm_operation,
    norm_backward_operation,
    norm_squares_operation,
    position_backward_operation,
    residual_add_operation,
    residual_norm_operation,
    rope_operation,
    rope_table_operation,
    select_rows_operation,
    sgd_operation,
    step_control_operation,
    swiglu_operation,
    swiglu_backward_operation,
};

double bytes_of(TypeSpan types) {
  double bytes = 0;
  for (const TensorType& type : types)
    bytes += static_cast<double>(type.shape.elements() * size_of(type.dtype));
  return bytes;
}

}  // namespace

Cost memory_cost(TypeSpan inputs, TypeSpan outputs, const Attributes&) {
  return {0, bytes_of(inputs) + bytes_of(outputs)};
}

std::int64_t workspace_bytes(const Operation& operation, TypeSpan inputs, TypeSpan outputs,
                             const Attributes& attributes, const DeviceCapabilities& device) {
  const std::span<const WorkspaceRow> rows =
      device.backend == DeviceCapabilities::Backend::cuda ? cuda_workspaces() : cpu_workspaces();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const WorkspaceRow& candidate) {
    return candidate.operation == operation.name;
  });
  return row == rows.end() ? 0 : row->bytes(inputs, outputs, attributes, device);
}

std::vector<const Operation*> all_operations() {
  std::vector<const Operation*> operations;
  for (Declaration declaration : kOperations) operations.push_back(&declaration());
  return operations;
}

const Operation& find_operation(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kOperations), std::end(kOperations),
                   [&](Declaration declaration) { return declaration().name == name; });
  STRATA_CHECK(found != std::end(kOperations), "unknown operation", name);
  return (*found)();
}

}  // namespace strata::kernels

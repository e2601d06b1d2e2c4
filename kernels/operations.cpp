// Every operation, by name. A new one is two lines: its header and its entry.
#include <algorithm>
#include <array>

#include "core/check.h"
#include "kernels/accumulate.h"
#include "kernels/adamw.h"
#include "kernels/adamw_8bit.h"
#include "kernels/adamw_bf16.h"
#include "kernels/add.h"
#include "kernels/add_loss.h"
#include "kernels/attention.h"
#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/cuda/workspaces.h"
#include "kernels/dropout.h"
#include "kernels/early_control.h"
#include "kernels/embedding.h"
#include "kernels/fill_zero.h"
#include "kernels/gelu.h"
#include "kernels/gradient_scale.h"
#include "kernels/head_loss.h"
#include "kernels/initialize.h"
#include "kernels/linear.h"
#include "kernels/lion.h"
#include "kernels/norm.h"
#include "kernels/norm_squares.h"
#include "kernels/operation.h"
#include "kernels/residual_add.h"
#include "kernels/rope.h"
#include "kernels/select_rows.h"
#include "kernels/sgd.h"
#include "kernels/step_control.h"
#include "kernels/swiglu.h"

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
  if (device.backend == DeviceCapabilities::Backend::cuda)
    return cuda::workspace_bytes(operation.name, inputs, outputs, attributes, device);
  if (operation.workspace == nullptr) return 0;
  return operation.workspace(inputs, outputs, attributes, device);
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

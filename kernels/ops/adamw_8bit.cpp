#include "kernels/ops/adamw_8bit.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("adamw_8bit", inputs);
  check.count(7, 7);
  check.dtype(0, "master", DType::f32);
  check.contiguous(0, "master");
  check.require(inputs[0].shape.ndim() == 1 && inputs[0].shape[0] % kQuantizedBlock == 0, 0,
                "master", "one dimension, a multiple of 128");
  const Shape& range = inputs[0].shape;
  const Shape blocks{range[0] / kQuantizedBlock};
  check.type(1, "m", {DType::u8, range});
  check.type(2, "v", {DType::u8, range});
  check.type(3, "m_scale", {DType::f32, blocks});
  check.type(4, "v_scale", {DType::f32, blocks});
  check.floats(5, "gradient");
  check.shape(5, "gradient", range);
  check.contiguous(5, "gradient");
  check.type(6, "control", {DType::u8, {sizeof(StepControl)}});
  Types outputs(inputs.begin(), inputs.begin() + 5);
  if (attributes.has("parameter_dtype"))
    outputs.emplace_back(check.float_attribute(attributes, "parameter_dtype"), range);
  return outputs;
}

}  // namespace

const Operation& adamw_8bit_operation() {
  static const Operation operation{.name = "adamw_8bit",
                                   .infer = infer,
                                   .cost = cost_per_output<80>,
                                   .spread = "n,n,n,n,n,n,->n,n,n,n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

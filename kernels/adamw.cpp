#include "kernels/adamw.h"

#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("adamw", inputs, 5, 5);
  for (int i = 0; i < 4; ++i) {
    expect_dtype("adamw", inputs, i, {DType::f32});
    expect_same_shape("adamw", inputs, i, 0);
    expect_contiguous("adamw", inputs, i);
  }
  expect_type("adamw", inputs, 4, {DType::u8, {sizeof(StepControl)}});
  Types outputs = {inputs[0], inputs[1], inputs[2]};
  if (attributes.has("parameter_dtype"))
    outputs.emplace_back(dtype_attribute("adamw", attributes, "parameter_dtype",
                                         {DType::f32, DType::bf16, DType::f16}),
                         inputs[0].shape);
  return outputs;
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 15.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& adamw_operation() {
  static const Operation operation{
      .name = "adamw", .infer = infer, .cost = cost, .aliases = {{0, 0}, {1, 1}, {2, 2}}};
  return operation;
}

}  // namespace strata::kernels

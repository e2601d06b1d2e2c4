#include "kernels/sgd.h"

#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const bool momentum = attributes.real("momentum", 0) > 0;
  expect_inputs("sgd", inputs, momentum ? 4 : 3, momentum ? 4 : 3);
  const int control = static_cast<int>(inputs.size()) - 1;
  for (int i = 0; i < control; ++i) {
    expect_dtype("sgd", inputs, i, {DType::f32});
    expect_same_shape("sgd", inputs, i, 0);
    expect_contiguous("sgd", inputs, i);
  }
  expect_type("sgd", inputs, control, {DType::u8, {sizeof(StepControl)}});
  Types outputs = {inputs[0]};
  if (momentum) outputs.push_back(inputs[1]);
  if (attributes.has("parameter_dtype"))
    outputs.emplace_back(dtype_attribute("sgd", attributes, "parameter_dtype",
                                         {DType::f32, DType::bf16, DType::f16}),
                         inputs[0].shape);
  return outputs;
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 7.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& sgd_operation() {
  // Momentum, when there is one, is updated in place, too; which operand it is depends on the
  // attributes, which an alias cannot say.
  static const Operation operation{
      .name = "sgd", .infer = infer, .cost = cost, .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

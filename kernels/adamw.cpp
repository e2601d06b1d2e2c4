#include "kernels/adamw.h"

#include "kernels/operand_check.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("adamw", inputs);
  check.count(5, 5);
  constexpr const char* kNames[] = {"master", "m", "v", "gradient"};
  for (std::size_t i = 0; i < 4; ++i) {
    if (i == 3)
      check.floats(i, kNames[i]);
    else
      check.dtype(i, kNames[i], DType::f32);
    check.shape(i, kNames[i], inputs[0].shape);
    check.contiguous(i, kNames[i]);
  }
  check.type(4, "control", {DType::u8, {sizeof(StepControl)}});
  Types outputs = {inputs[0], inputs[1], inputs[2]};
  if (attributes.has("parameter_dtype"))
    outputs.emplace_back(check.float_attribute(attributes, "parameter_dtype"), inputs[0].shape);
  return outputs;
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 15.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& adamw_operation() {
  static const Operation operation{.name = "adamw",
                                   .infer = infer,
                                   .cost = cost,
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

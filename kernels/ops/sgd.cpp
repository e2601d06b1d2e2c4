#include "kernels/ops/sgd.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const bool momentum = attributes.real("momentum", 0) > 0;
  const OperandCheck check("sgd", inputs);
  const std::size_t control = momentum ? 3 : 2;
  check.count(control + 1, control + 1);
  for (std::size_t i = 0; i < control; ++i) {
    const char* name = i == 0 ? "master" : i + 1 == control ? "gradient" : "momentum";
    if (i + 1 == control)
      check.floats(i, name);
    else
      check.dtype(i, name, DType::f32);
    check.shape(i, name, inputs[0].shape);
    check.contiguous(i, name);
  }
  check.type(control, "control", {DType::u8, {sizeof(StepControl)}});
  Types outputs = {inputs[0]};
  if (momentum) outputs.push_back(inputs[1]);
  if (attributes.has("parameter_dtype"))
    outputs.emplace_back(check.float_attribute(attributes, "parameter_dtype"), inputs[0].shape);
  return outputs;
}

std::string_view rule(const Attributes& attributes) {
  return attributes.real("momentum", 0) > 0 ? "n,n,n,->n,n,n" : "n,n,->n,n";
}

}  // namespace

const Operation& sgd_operation() {
  // Steps update the momentum in place, too. No alias says so, because the attributes decide
  // whether output 1 is the momentum.
  static const Operation operation{.name = "sgd",
                                   .infer = infer,
                                   .cost = cost_per_output<7>,
                                   .spread = rule,
                                   .aliases = {{0, 0}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

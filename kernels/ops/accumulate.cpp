#include "kernels/ops/accumulate.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("accumulate", inputs);
  check.count(2, 2);
  const TensorType& sum = check.floats(0, "sum");
  check.floats(1, "x");
  check.shape(1, "x", sum.shape);
  return {inputs[0]};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& accumulate_operation() {
  static const Operation operation{
      .name = "accumulate", .infer = infer, .cost = cost, .spread = kAlike, .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

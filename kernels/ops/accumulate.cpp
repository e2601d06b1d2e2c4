#include "kernels/ops/accumulate.h"

#include "kernels/ops/element_cost.h"
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

}  // namespace

const Operation& accumulate_operation() {
  static const Operation operation{.name = "accumulate",
                                   .infer = infer,
                                   .cost = cost_per_output<1>,
                                   .spread = kAlike,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

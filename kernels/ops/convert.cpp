#include "kernels/ops/convert.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("convert", inputs);
  check.count(1, 1);
  const TensorType& x = check.floats(0, "x");
  return {TensorType(check.float_attribute(attributes, "dtype"), x.shape)};
}

}  // namespace

const Operation& convert_operation() {
  static const Operation operation{
      .name = "convert", .infer = infer, .cost = memory_cost, .spread = kAlike};
  return operation;
}

}  // namespace strata::kernels

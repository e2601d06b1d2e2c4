#include "kernels/ops/copy.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  OperandCheck("copy", inputs).count(1, 1);
  return {TensorType(inputs[0].dtype, inputs[0].shape)};
}

}  // namespace

const Operation& copy_operation() {
  static const Operation operation{
      .name = "copy", .infer = infer, .cost = memory_cost, .spread = kAlike, .predicated = true};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/gradient_scale.h"

#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("gradient_scale", inputs);
  check.count(2, 2);
  check.type(0, "state", {DType::u8, {sizeof(StepState)}});
  check.type(1, "targets", {DType::i64, {1}});
  return {TensorType(DType::f32, {2})};
}

}  // namespace

const Operation& gradient_scale_operation() {
  static const Operation operation{.name = "gradient_scale", .infer = infer, .cost = memory_cost};
  return operation;
}

}  // namespace strata::kernels

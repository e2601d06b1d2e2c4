#include "kernels/gradient_scale.h"

#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  expect_inputs("gradient_scale", inputs, 2, 2);
  expect_type("gradient_scale", inputs, 0, {DType::u8, {sizeof(StepState)}});
  expect_type("gradient_scale", inputs, 1, {DType::f64, {2}});
  return {TensorType(DType::f32, {2})};
}

}  // namespace

const Operation& gradient_scale_operation() {
  static const Operation operation{.name = "gradient_scale", .infer = infer, .cost = memory_cost};
  return operation;
}

}  // namespace strata::kernels

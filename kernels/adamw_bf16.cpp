#include "kernels/adamw_bf16.h"

#include "core/error.h"
#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  expect_inputs("adamw_bf16", inputs, 6, 6);
  for (int i = 0; i < 4; ++i) {
    if (i < 3)
      expect_dtype("adamw_bf16", inputs, i, {DType::bf16});
    else
      expect_dtype("adamw_bf16", inputs, i, {DType::bf16, DType::f32});
    expect_same_shape("adamw_bf16", inputs, i, 0);
    expect_contiguous("adamw_bf16", inputs, i);
  }
  expect_type("adamw_bf16", inputs, 4, {DType::u8, {sizeof(StepControl)}});
  expect_dtype("adamw_bf16", inputs, 5, {DType::i64});
  if (inputs[5].shape.ndim() != 1 || inputs[5].shape.elements() < 2)
    throw InvalidArgument("adamw_bf16: rng is " + inputs[5].to_string() +
                          ", expected i64 of at least 2 elements, seed and step");
  return {inputs[0], inputs[1], inputs[2]};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 15.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& adamw_bf16_operation() {
  static const Operation operation{
      .name = "adamw_bf16", .infer = infer, .cost = cost, .aliases = {{0, 0}, {1, 1}, {2, 2}}};
  return operation;
}

}  // namespace strata::kernels

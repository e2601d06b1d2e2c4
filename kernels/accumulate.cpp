#include "kernels/accumulate.h"

#include "kernels/infer_checks.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  expect_inputs("accumulate", inputs, 2, 2);
  expect_dtype("accumulate", inputs, 0, {DType::f32});
  expect_dtype("accumulate", inputs, 1, {DType::f32, DType::bf16, DType::f16});
  expect_same_shape("accumulate", inputs, 1, 0);
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
      .name = "accumulate", .infer = infer, .cost = cost, .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

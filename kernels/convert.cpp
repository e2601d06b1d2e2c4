#include "kernels/convert.h"

#include "kernels/infer_checks.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("convert", inputs, 1, 1);
  expect_dtype("convert", inputs, 0, {DType::f32, DType::bf16, DType::f16});
  const DType dtype =
      dtype_attribute("convert", attributes, "dtype", {DType::f32, DType::bf16, DType::f16});
  return {TensorType(dtype, inputs[0].shape)};
}

}  // namespace

const Operation& convert_operation() {
  static const Operation operation{.name = "convert", .infer = infer, .cost = memory_cost};
  return operation;
}

}  // namespace strata::kernels

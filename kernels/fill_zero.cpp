#include "kernels/fill_zero.h"

#include "kernels/infer_checks.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("fill_zero", inputs, 0, 0);
  const auto dtype = static_cast<DType>(attributes.integer("dtype"));
  const std::int64_t rows = attributes.integer("rows");
  if (!attributes.has("cols")) return {TensorType(dtype, {rows})};
  return {TensorType(dtype, {rows, attributes.integer("cols")})};
}

}  // namespace

const Operation& fill_zero_operation() {
  static const Operation operation{.name = "fill_zero", .infer = infer, .cost = memory_cost};
  return operation;
}

}  // namespace strata::kernels

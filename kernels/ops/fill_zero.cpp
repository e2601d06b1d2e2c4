#include "kernels/ops/fill_zero.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  OperandCheck("fill_zero", inputs).count(0, 0);
  const auto dtype = static_cast<DType>(attributes.integer("dtype"));
  const std::int64_t rows = attributes.integer("rows");
  if (!attributes.has("cols")) return {TensorType(dtype, {rows})};
  return {TensorType(dtype, {rows, attributes.integer("cols")})};
}

}  // namespace

const Operation& fill_zero_operation() {
  static const Operation operation{
      .name = "fill_zero", .infer = infer, .cost = memory_cost, .spread = "->0"};
  return operation;
}

}  // namespace strata::kernels

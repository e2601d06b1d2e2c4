#include "kernels/ops/select_rows.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("select_rows", inputs);
  check.count(2, 2);
  const TensorType& x = check.floats(0, "x", {2});
  check.dtype(1, "index", DType::i32);
  check.require(inputs[1].shape.ndim() == 1, 1, "index", "1 dimension");
  return {TensorType(x.dtype, {inputs[1].shape[0], x.shape[1]})};
}

Cost cost(TypeSpan, TypeSpan outputs, const Attributes&) {
  const double rows = static_cast<double>(outputs[0].shape.rows());
  return {0, 2 * static_cast<double>(outputs[0].span_bytes()) + rows * 4};
}

}  // namespace

const Operation& select_rows_operation() {
  static const Operation operation{
      .name = "select_rows", .infer = infer, .cost = cost, .spread = "n,n->n"};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/add.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("add", inputs);
  check.count(2, 2);
  const TensorType& a = check.floats(0, "a", {1, 2, 3, 4});
  check.shape(1, "b", a.shape);
  check.dtype(1, "b", a.dtype);
  return {TensorType(a.dtype, a.shape)};
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {{}, {{0, {Source::output_gradient, 0}}, {1, {Source::output_gradient, 0}}}};
}

}  // namespace

const Operation& add_operation() {
  static const Operation operation{.name = "add",
                                   .infer = infer,
                                   .cost = cost_per_output<1>,
                                   .spread = kAlike,
                                   .gradient = gradient,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

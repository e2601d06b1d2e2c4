#include "kernels/ops/residual_add.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("residual_add", inputs);
  const bool drops = attributes.real("p", 0) > 0;
  check.count(drops ? 3 : 2, drops ? 3 : 2);
  const TensorType& x = check.floats(0, "x", {2});
  check.shape(1, "delta", x.shape);
  check.dtype(1, "delta", x.dtype);
  if (drops) check.random(2, x.shape.rows(), attributes.integer("sequence"));
  return {TensorType(x.dtype, x.shape)};
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes& attributes) {
  const GradientOperand dy{Source::output_gradient, 0};
  if (attributes.real("p", 0) == 0) return {{}, {{0, dy}, {1, dy}}};
  return {{{"dropout", {dy, {Source::input, 2}}, {}}}, {{0, dy}, {1, {Source::result, 0}}}};
}

}  // namespace

const Operation& residual_add_operation() {
  static const Operation operation{.name = "residual_add",
                                   .infer = infer,
                                   .cost = cost_per_output<1>,
                                   .spread = "n,n,n->n",
                                   .gradient = gradient,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

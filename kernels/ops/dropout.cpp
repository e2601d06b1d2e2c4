#include "kernels/ops/dropout.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr int kFlops = 10;  // per element, integer rounds of the generator counted

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("dropout", inputs);
  check.count(2, 2);
  const TensorType& x = check.floats(0, "x", {2, 3});
  check.random(1, x.shape.rows(), attributes.integer("sequence"));
  return {TensorType(x.dtype, x.shape)};
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {{{"dropout", {{Source::output_gradient, 0}, {Source::input, 1}}, {}}},
          {{0, {Source::result, 0}}}};
}

}  // namespace

const Operation& dropout_operation() {
  static const Operation operation{.name = "dropout",
                                   .infer = infer,
                                   .cost = cost_per_output<kFlops>,
                                   .spread = "n,n->n",
                                   .gradient = gradient,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/swiglu.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr int kForwardFlops = 25, kBackwardFlops = 35;  // per element of y and dy

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("swiglu", inputs);
  check.count(1, 1);
  const TensorType& x = check.floats(0, "gate and up", {2});
  check.require(x.shape[1] % 2 == 0, 0, "gate and up", "an even number of columns");
  return {TensorType(x.dtype, {x.shape[0], x.shape[1] / 2})};
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {{{"swiglu_backward", {{Source::output_gradient, 0}, {Source::input, 0}}, {}}},
          {{0, {Source::result, 0}}}};
}

Types infer_backward(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("swiglu_backward", inputs);
  check.count(2, 2);
  const TensorType& dy = check.floats(0, "dy", {2});
  const TensorType& x = check.floats(1, "gate and up", {2});
  check.shape(1, "gate and up", {dy.shape[0], 2 * dy.shape[1]});
  return {TensorType(x.dtype, x.shape)};
}

}  // namespace

const Operation& swiglu_operation() {
  static const Operation operation{.name = "swiglu",
                                   .infer = infer,
                                   .cost = cost_per_output<kForwardFlops>,
                                   .spread = "nf->nf",
                                   .gradient = gradient};
  return operation;
}

const Operation& swiglu_backward_operation() {
  static const Operation operation{.name = "swiglu_backward",
                                   .infer = infer_backward,
                                   .cost = cost_per_input<kBackwardFlops>,
                                   .spread = "nf,nf->nf",
                                   .aliases = {{0, 1}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/gelu.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr int kForwardFlops = 30, kBackwardFlops = 45;  // per element, the exponential counted

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("gelu", inputs);
  check.count(1, 1);
  const TensorType& x = check.floats(0, "x", {2, 3});
  return {TensorType(x.dtype, x.shape)};
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {{{"gelu_backward", {{Source::output_gradient, 0}, {Source::input, 0}}, {}}},
          {{0, {Source::result, 0}}}};
}

Types infer_backward(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("gelu_backward", inputs);
  check.count(2, 2);
  const TensorType& dy = check.floats(0, "dy", {2, 3});
  check.floats(1, "x", {2, 3});
  check.shape(1, "x", dy.shape);
  return {TensorType(dy.dtype, dy.shape)};
}

}  // namespace

const Operation& gelu_operation() {
  static const Operation operation{.name = "gelu",
                                   .infer = infer,
                                   .cost = cost_per_output<kForwardFlops>,
                                   .spread = "nf->nf",
                                   .gradient = gradient};
  return operation;
}

const Operation& gelu_backward_operation() {
  static const Operation operation{.name = "gelu_backward",
                                   .infer = infer_backward,
                                   .cost = cost_per_output<kBackwardFlops>,
                                   .spread = "nf,nf->nf",
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

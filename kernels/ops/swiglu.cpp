#include "kernels/ops/swiglu.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr double kForwardFlops = 25, kBackwardFlops = 35;  // per element of the output

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("swiglu", inputs);
  check.count(1, 1);
  const TensorType& x = check.floats(0, "gate and up", {2});
  check.require(x.shape[1] % 2 == 0, 0, "gate and up", "an even number of columns");
  return {TensorType(x.dtype, {x.shape[0], x.shape[1] / 2})};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = kForwardFlops * static_cast<double>(outputs[0].shape.elements());
  return cost;
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

Cost cost_backward(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = kBackwardFlops * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& swiglu_operation() {
  static const Operation operation{
      .name = "swiglu", .infer = infer, .cost = cost, .spread = "nf->nf", .gradient = gradient};
  return operation;
}

const Operation& swiglu_backward_operation() {
  static const Operation operation{.name = "swiglu_backward",
                                   .infer = infer_backward,
                                   .cost = cost_backward,
                                   .spread = "nf,nf->nf",
                                   .aliases = {{0, 1}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/linear.h"

#include <fmt/core.h>

#include "kernels/ops/element_cost.h"
#include "kernels/ops/linear_products.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

/// Requires that operand `i` can be seen as a matrix; returns its type.
const TensorType& matrix(const OperandCheck& check, std::size_t i, std::string_view name) {
  const TensorType& type = check.floats(i, name);
  const int ndim = type.shape.ndim();
  check.require(ndim >= 2 && ndim <= 3 && type.shape.elements() > 0, i, name,
                "two or three dimensions, none of them 0");
  return type;
}

Types infer_linear(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("linear", inputs);
  check.count(2, 3);
  const TensorType& x = matrix(check, 0, "x");
  const TensorType& w = matrix(check, 1, "W");
  const bool transposed = is_transposed(attributes);
  const std::int64_t in = transposed ? w.shape.rows() : w.shape.cols();
  const std::int64_t out = transposed ? w.shape.cols() : w.shape.rows();
  check.require(in == x.shape.cols(), 1, "W", fmt::format("an input size of {}", x.shape.cols()));
  if (inputs.size() == 3) check.type(2, "bias", TensorType(w.dtype, {out}));
  return {TensorType(x.dtype, {x.shape.rows(), out})};
}

Types infer_input(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("linear_backward_input", inputs);
  check.count(2, 2);
  const TensorType& dy = matrix(check, 0, "dy");
  const TensorType& w = matrix(check, 1, "W");
  const bool transposed = is_transposed(attributes);
  const std::int64_t in = transposed ? w.shape.rows() : w.shape.cols();
  const std::int64_t out = transposed ? w.shape.cols() : w.shape.rows();
  check.require(out == dy.shape.cols(), 1, "W",
                fmt::format("an output size of {}", dy.shape.cols()));
  return {TensorType(dy.dtype, {dy.shape.rows(), in})};
}

Types infer_weight(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("linear_backward_weight", inputs);
  check.count(2, 2);
  const TensorType& dy = matrix(check, 0, "dy");
  const TensorType& x = matrix(check, 1, "x");
  check.require(x.shape.rows() == dy.shape.rows(), 1, "x",
                fmt::format("a number of rows of {}", dy.shape.rows()));
  const std::int64_t in = x.shape.cols(), out = dy.shape.cols();
  const DType dtype = check.gradient_dtype(attributes, dy.dtype);
  return {is_transposed(attributes) ? TensorType(dtype, {in, out}) : TensorType(dtype, {out, in})};
}

Types infer_bias(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("linear_backward_bias", inputs);
  check.count(1, 1);
  const TensorType& dy = matrix(check, 0, "dy");
  return {TensorType(check.gradient_dtype(attributes, dy.dtype), {dy.shape.cols()})};
}

std::string_view rule_linear(const Attributes& attributes) {
  return is_transposed(attributes) ? "nk,km,+m->nm" : "nk,mk,+m->nm";
}

std::string_view rule_input(const Attributes& attributes) {
  return is_transposed(attributes) ? "nm,km->nk" : "nm,mk->nk";
}

std::string_view rule_weight(const Attributes& attributes) {
  return is_transposed(attributes) ? "nm,nk->km" : "nm,nk->mk";
}

/// Counts 2 M N K flops for a product C [M,N] with inner dimension K.
Cost product_cost(const MatmulTypes& types, TypeSpan inputs, TypeSpan outputs,
                  const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 2.0 * static_cast<double>(types.m()) * static_cast<double>(types.n()) *
               static_cast<double>(types.k());
  return cost;
}

template <MatmulTypes (*kTypes)(TypeSpan, TypeSpan, const Attributes&)>
Cost cost_of(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return product_cost(kTypes(inputs, outputs, attributes), inputs, outputs, attributes);
}

GradientRule linear_gradient(TypeSpan inputs, TypeSpan, const Attributes&) {
  const GradientOperand dy{Source::output_gradient, 0};
  GradientRule rule;
  rule.steps.push_back({"linear_backward_input", {dy, {Source::input, 1}}, {}});
  rule.steps.push_back({"linear_backward_weight", {dy, {Source::input, 0}}, {}});
  rule.input_gradients = {{0, {Source::result, 0}}, {1, {Source::result, 1}}};
  if (inputs.size() == 3) {
    rule.steps.push_back({"linear_backward_bias", {dy}, {}});
    rule.input_gradients.push_back({2, {Source::result, 2}});
  }
  return rule;
}

}  // namespace

bool is_transposed(const Attributes& attributes) {
  return attributes.integer("transposed", 0) != 0;
}

MatmulTypes linear_types(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return {.a = inputs[0],
          .b = inputs[1],
          .c = outputs[0],
          .a_transposed = false,
          .b_transposed = !is_transposed(attributes)};
}

MatmulTypes linear_backward_input_types(TypeSpan inputs, TypeSpan outputs,
                                        const Attributes& attributes) {
  return {.a = inputs[0],
          .b = inputs[1],
          .c = outputs[0],
          .a_transposed = false,
          .b_transposed = is_transposed(attributes)};
}

MatmulTypes linear_backward_weight_types(TypeSpan inputs, TypeSpan outputs,
                                         const Attributes& attributes) {
  const bool transposed = is_transposed(attributes);
  return {.a = inputs[transposed ? 1 : 0],
          .b = inputs[transposed ? 0 : 1],
          .c = outputs[0],
          .a_transposed = true,
          .b_transposed = false};
}

const Operation& linear_operation() {
  static const Operation operation{.name = "linear",
                                   .infer = infer_linear,
                                   .cost = cost_of<linear_types>,
                                   .spread = rule_linear,
                                   .gradient = linear_gradient};
  return operation;
}

const Operation& linear_backward_input_operation() {
  static const Operation operation{.name = "linear_backward_input",
                                   .infer = infer_input,
                                   .cost = cost_of<linear_backward_input_types>,
                                   .spread = rule_input};
  return operation;
}

const Operation& linear_backward_weight_operation() {
  static const Operation operation{.name = "linear_backward_weight",
                                   .infer = infer_weight,
                                   .cost = cost_of<linear_backward_weight_types>,
                                   .spread = rule_weight};
  return operation;
}

const Operation& linear_backward_bias_operation() {
  static const Operation operation{.name = "linear_backward_bias",
                                   .infer = infer_bias,
                                   .cost = cost_per_input<1>,
                                   .spread = "nm->m"};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/linear.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/linear_products.h"
#include "kernels/infer_checks.h"

namespace strata::kernels {
namespace {

/// A matrix seen as two dimensions; throws unless it has `least` to three and no empty one.
void expect_matrix(std::string_view operation, TypeSpan inputs, int input, int least) {
  expect_dtype(operation, inputs, input, {DType::f32, DType::bf16, DType::f16});
  const TensorType& type = inputs[static_cast<std::size_t>(input)];
  if (type.shape.ndim() >= least && type.shape.ndim() <= 3 && type.shape.elements() > 0) return;
  throw InvalidArgument(std::string(operation) + ": operand " + std::to_string(input) + " is " +
                        type.to_string() + ", expected two or three dimensions, none of them 0");
}

void expect_extent(std::string_view operation, const TensorType& type, const char* what,
                   std::int64_t found, std::int64_t expected) {
  if (found == expected) return;
  throw InvalidArgument(std::string(operation) + ": " + what + " of " + type.to_string() + " is " +
                        std::to_string(found) + ", expected " + std::to_string(expected));
}

DType gradient_dtype(std::string_view operation, TypeSpan inputs, const Attributes& attributes) {
  if (!attributes.has("gradient_dtype")) return inputs[0].dtype;
  return dtype_attribute(operation, attributes, "gradient_dtype",
                         {DType::f32, DType::bf16, DType::f16});
}

Types infer_linear(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("linear", inputs, 2, 3);
  expect_matrix("linear", inputs, 0, 2);
  expect_matrix("linear", inputs, 1, 2);
  const bool transposed = is_transposed(attributes);
  const TensorType& w = inputs[1];
  const std::int64_t out = transposed ? w.shape.cols() : w.shape.rows();
  expect_extent("linear", w, "input size", transposed ? w.shape.rows() : w.shape.cols(),
                inputs[0].shape.cols());
  if (inputs.size() == 3) {
    expect_type("linear", inputs, 2, TensorType(w.dtype, {out}));
  }
  return {TensorType(inputs[0].dtype, {inputs[0].shape.rows(), out})};
}

Types infer_input(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("linear_backward_input", inputs, 2, 2);
  expect_matrix("linear_backward_input", inputs, 0, 2);
  expect_matrix("linear_backward_input", inputs, 1, 2);
  const bool transposed = is_transposed(attributes);
  const TensorType& w = inputs[1];
  expect_extent("linear_backward_input", w, "output size",
                transposed ? w.shape.cols() : w.shape.rows(), inputs[0].shape.cols());
  return {TensorType(inputs[0].dtype,
                     {inputs[0].shape.rows(), transposed ? w.shape.rows() : w.shape.cols()})};
}

Types infer_weight(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("linear_backward_weight", inputs, 2, 2);
  expect_matrix("linear_backward_weight", inputs, 0, 2);
  expect_matrix("linear_backward_weight", inputs, 1, 2);
  expect_extent("linear_backward_weight", inputs[1], "number of rows", inputs[1].shape.rows(),
                inputs[0].shape.rows());
  const std::int64_t out = inputs[0].shape.cols();
  const std::int64_t in = inputs[1].shape.cols();
  const DType dtype = gradient_dtype("linear_backward_weight", inputs, attributes);
  return {is_transposed(attributes) ? TensorType(dtype, {in, out}) : TensorType(dtype, {out, in})};
}

Types infer_bias(TypeSpan inputs, const Attributes& attributes) {
  expect_inputs("linear_backward_bias", inputs, 1, 1);
  expect_matrix("linear_backward_bias", inputs, 0, 2);
  return {TensorType(gradient_dtype("linear_backward_bias", inputs, attributes),
                     {inputs[0].shape.cols()})};
}

/// 2 N M K: N M K is the root of the product of the three matrices' sizes.
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

template <MatmulTypes (*kTypes)(TypeSpan, TypeSpan, const Attributes&)>
std::int64_t workspace_of(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                          const DeviceCapabilities& device) {
  return MatmulEngine::scratch_bytes(kTypes(inputs, outputs, attributes), device.workers);
}

Cost bias_cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = static_cast<double>(inputs[0].shape.elements());
  return cost;
}

GradientRule linear_gradient(TypeSpan inputs, TypeSpan, const Attributes&) {
  const Operand dy{Source::output_gradient, 0};
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

const Operation& linear_operation() {
  static const Operation operation{.name = "linear",
                                   .infer = infer_linear,
                                   .cost = cost_of<linear_types>,
                                   .workspace = workspace_of<linear_types>,
                                   .gradient = linear_gradient};
  return operation;
}

const Operation& linear_backward_input_operation() {
  static const Operation operation{.name = "linear_backward_input",
                                   .infer = infer_input,
                                   .cost = cost_of<linear_backward_input_types>,
                                   .workspace = workspace_of<linear_backward_input_types>};
  return operation;
}

const Operation& linear_backward_weight_operation() {
  static const Operation operation{.name = "linear_backward_weight",
                                   .infer = infer_weight,
                                   .cost = cost_of<linear_backward_weight_types>,
                                   .workspace = workspace_of<linear_backward_weight_types>};
  return operation;
}

const Operation& linear_backward_bias_operation() {
  static const Operation operation{
      .name = "linear_backward_bias", .infer = infer_bias, .cost = bias_cost};
  return operation;
}

}  // namespace strata::kernels

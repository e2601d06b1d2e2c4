#include "kernels/head_loss.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/head_geometry.h"
#include "kernels/infer_checks.h"

namespace strata::kernels {
namespace {

void check_inputs(std::string_view name, TypeSpan inputs, const Attributes& attributes) {
  expect_inputs(name, inputs, 4, 4);
  for (int i : {0, 1}) {
    expect_dtype(name, inputs, i, {DType::f32, DType::bf16, DType::f16});
    const TensorType& type = inputs[static_cast<std::size_t>(i)];
    if (type.shape.ndim() != 2 || type.shape.elements() == 0)
      throw InvalidArgument(std::string(name) + ": operand " + std::to_string(i) + " is " +
                            type.to_string() + ", expected two dimensions, neither of them 0");
  }
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (x[1] != w[1])
    throw InvalidArgument(std::string(name) + ": operand 1 (W) is " + inputs[1].to_string() +
                          ", expected [V, " + std::to_string(x[1]) + "] for x of " +
                          inputs[0].to_string());
  expect_type(name, inputs, 2, TensorType(DType::i32, {x[0]}));
  expect_type(name, inputs, 3, TensorType(DType::f32, {2}));
  const std::int64_t vocabulary = attributes.integer("vocabulary");
  if (vocabulary < 1 || vocabulary > w[0])
    throw InvalidArgument(std::string(name) + ": attribute vocabulary is " +
                          std::to_string(vocabulary) + ", expected 1 to " + std::to_string(w[0]) +
                          ", the rows of operand 1 (W)");
}

Types infer_train(TypeSpan inputs, const Attributes& attributes) {
  check_inputs("head_loss", inputs, attributes);
  const DType gradient = attributes.has("gradient_dtype")
                             ? dtype_attribute("head_loss", attributes, "gradient_dtype",
                                               {DType::f32, DType::bf16, DType::f16})
                             : inputs[1].dtype;
  return {TensorType(DType::f64, {1}), TensorType(inputs[0].dtype, inputs[0].shape),
          TensorType(gradient, inputs[1].shape)};
}

Types infer_eval(TypeSpan inputs, const Attributes& attributes) {
  check_inputs("head_loss_eval", inputs, attributes);
  return {TensorType(DType::f64, {1})};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  const double products = outputs.size() > 1 ? 3 : 1;
  cost.flops = 2.0 * products * static_cast<double>(inputs[0].shape.elements()) *
               static_cast<double>(inputs[1].shape.rows());
  return cost;
}

std::int64_t workspace(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                       const DeviceCapabilities& device) {
  return head_geometry(inputs, outputs, attributes, device.workers).total_bytes;
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {.steps = {}, .input_gradients = {{0, {Source::output, 1}}, {1, {Source::output, 2}}}};
}

}  // namespace

const Operation& head_loss_operation() {
  static const Operation operation{.name = "head_loss",
                                   .infer = infer_train,
                                   .cost = cost,
                                   .workspace = workspace,
                                   .gradient = gradient};
  return operation;
}

const Operation& head_loss_eval_operation() {
  static const Operation operation{
      .name = "head_loss_eval", .infer = infer_eval, .cost = cost, .workspace = workspace};
  return operation;
}

}  // namespace strata::kernels

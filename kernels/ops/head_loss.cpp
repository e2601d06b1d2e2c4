#include "kernels/ops/head_loss.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

OperandCheck check_inputs(std::string_view operation, TypeSpan inputs,
                          const Attributes& attributes) {
  const OperandCheck check(operation, inputs);
  check.count(4, 4);
  const auto matrix = [&](std::size_t i, std::string_view name) -> const Shape& {
    const TensorType& type = check.floats(i, name);
    check.require(type.shape.ndim() == 2 && type.shape.elements() > 0, i, name,
                  "two dimensions, neither of them 0");
    return type.shape;
  };
  const Shape& x = matrix(0, "x");
  const Shape& w = matrix(1, "W");
  check.require(x[1] == w[1], 1, "W",
                fmt::format("[V, {}] for x of {}", x[1], inputs[0].to_string()));
  check.type(2, "targets", TensorType(DType::i32, {x[0]}));
  check.type(3, "scale", TensorType(DType::f32, {2}));
  const std::int64_t vocabulary = attributes.integer("vocabulary");
  if (vocabulary < 1 || vocabulary > w[0])
    throw InvalidArgument(
        fmt::format("{}: attribute vocabulary is {}, expected 1 to {}, the rows of W", operation,
                    vocabulary, w[0]));
  return check;
}

Types infer_train(TypeSpan inputs, const Attributes& attributes) {
  const DType gradient =
      check_inputs("head_loss", inputs, attributes).gradient_dtype(attributes, inputs[1].dtype);
  return {TensorType(DType::f64, {1}), TensorType(inputs[0].dtype, inputs[0].shape),
          TensorType(gradient, inputs[1].shape)};
}

Types infer_eval(TypeSpan inputs, const Attributes& attributes) {
  check_inputs("head_loss_eval", inputs, attributes);
  return {TensorType(DType::f64, {1})};
}

/// Logits are no operand, but they are made, and turned into gradients, in chunks of rows: each one
/// is written and read once. Without that, times of few columns say nothing of those of many.
Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.bytes += 2.0 * static_cast<double>(sizeof(float)) *
                static_cast<double>(inputs[0].shape.rows() * inputs[1].shape.rows());
  const double products = outputs.size() > 1 ? 3 : 1;
  cost.flops = 2.0 * products * static_cast<double>(inputs[0].shape.elements()) *
               static_cast<double>(inputs[1].shape.rows());
  return cost;
}

GradientRule gradient(TypeSpan, TypeSpan, const Attributes&) {
  return {.steps = {}, .input_gradients = {{0, {Source::output, 1}}, {1, {Source::output, 2}}}};
}

}  // namespace

const Operation& head_loss_operation() {
  static const Operation operation{.name = "head_loss",
                                   .infer = infer_train,
                                   .cost = cost,
                                   .spread = "n,,n,->,n,",
                                   .gradient = gradient};
  return operation;
}

const Operation& head_loss_eval_operation() {
  static const Operation operation{
      .name = "head_loss_eval", .infer = infer_eval, .cost = cost, .spread = "n,,n,->"};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/embedding.h"

#include <fmt/core.h>

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

double number_of(DType type) { return static_cast<double>(type); }

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("embedding", inputs);
  check.count(2, 3);
  check.dtype(0, "ids", DType::i32);
  check.require(inputs[0].shape.ndim() == 1, 0, "ids", "1 dimension");
  const std::int64_t rows = inputs[0].shape[0];
  const TensorType& table = check.floats(1, "table", {2});
  const std::int64_t sequence = attributes.integer("sequence");
  samples_of("embedding", rows, sequence);
  if (inputs.size() == 3) {
    const TensorType& positions = check.floats(2, "positions", {2});
    check.require(
        positions.shape[0] >= sequence && positions.shape[1] == table.shape[1], 2, "positions",
        "at least " + Shape{sequence, table.shape[1]}.to_string() + "; use a shorter sequence");
  }
  const auto dtype = static_cast<DType>(attributes.integer("dtype"));
  return {TensorType(dtype, {rows, table.shape[1]})};
}

/// Counts only the rows of the tables that are looked up.
Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes&) {
  const double elements = static_cast<double>(outputs[0].shape.elements());
  const double tables = static_cast<double>(inputs.size() - 1);
  return {elements * (tables - 1),
          elements * (tables * size_of(inputs[1].dtype) + size_of(outputs[0].dtype))};
}

GradientRule gradient(TypeSpan inputs, TypeSpan, const Attributes& attributes) {
  const OperandCheck check("embedding", inputs);
  const auto step = [&](std::string_view name, std::vector<GradientOperand> operands, int input) {
    const TensorType& table = inputs[static_cast<std::size_t>(input)];
    const DType dtype = check.gradient_dtype(attributes, table.dtype);
    return BackwardStep{
        name,
        std::move(operands),
        {{"rows", static_cast<double>(table.shape[0])}, {"gradient_dtype", number_of(dtype)}}};
  };
  const GradientOperand dx{Source::output_gradient, 0};
  GradientRule rule{{step("embedding_backward", {{Source::input, 0}, dx}, 1)},
                    {{1, {Source::result, 0}}}};
  rule.steps[0].accumulates = true;
  if (inputs.size() == 3) {
    rule.steps.push_back(step("position_backward", {dx}, 2));
    rule.input_gradients.push_back({2, {Source::result, 1}});
  }
  return rule;
}

Types infer_backward(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("embedding_backward", inputs);
  check.count(2, 3);
  check.dtype(0, "ids", DType::i32);
  const TensorType& dx = check.floats(1, "dx", {2});
  check.shape(0, "ids", {dx.shape[0]});
  const TensorType dtable(check.gradient_dtype(attributes, dx.dtype),
                          {attributes.integer("rows"), dx.shape[1]});
  if (inputs.size() == 3) {
    check.shape(2, "existing gradient", dtable.shape);
    check.dtype(2, "existing gradient", dtable.dtype);
  }
  return {dtable};
}

/// Counts the touched rows if a gradient exists, which is updated in place; else the whole table.
Cost cost_backward(TypeSpan inputs, TypeSpan outputs, const Attributes&) {
  const double elements = static_cast<double>(inputs[1].shape.elements());
  const double table = static_cast<double>(outputs[0].shape.elements());
  const double touched = elements < table ? elements : table;
  const double size = static_cast<double>(size_of(outputs[0].dtype));
  const double written = inputs.size() == 3 ? 2 * touched : table;
  return {elements, elements * static_cast<double>(size_of(inputs[1].dtype)) + written * size};
}

Types infer_position(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("position_backward", inputs);
  check.count(1, 1);
  const TensorType& dx = check.floats(0, "dx", {2});
  const std::int64_t sequence = attributes.integer("sequence");
  samples_of("position_backward", dx.shape[0], sequence);
  const std::int64_t rows = attributes.integer("rows");
  check.require(rows >= sequence, 0, "dx", fmt::format("a sequence of at most {} positions", rows));
  return {TensorType(check.gradient_dtype(attributes, dx.dtype), {rows, dx.shape[1]})};
}

}  // namespace

const Operation& embedding_operation() {
  static const Operation operation{.name = "embedding",
                                   .infer = infer,
                                   .cost = cost,
                                   .spread = "n,.h,.h->nh",
                                   .gradient = gradient};
  return operation;
}

const Operation& embedding_backward_operation() {
  static const Operation operation{.name = "embedding_backward",
                                   .infer = infer_backward,
                                   .cost = cost_backward,
                                   .spread = "n,nh,+.h->.h",
                                   .aliases = {{0, 2}}};
  return operation;
}

const Operation& position_backward_operation() {
  static const Operation operation{.name = "position_backward",
                                   .infer = infer_position,
                                   .cost = memory_cost,
                                   .spread = "nh->.h"};
  return operation;
}

}  // namespace strata::kernels

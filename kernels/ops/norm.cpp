#include "kernels/ops/norm.h"

#include <algorithm>

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr int kForwardFlops = 8, kBackwardFlops = 16;  // per element

std::int64_t columns_of(const TensorType& x) { return x.shape[x.shape.ndim() - 1]; }

TensorType stats_type(const TensorType& x) {
  if (x.shape.ndim() == 2) return {DType::f32, {x.shape[0], 2}};
  return {DType::f32, {x.shape[0], x.shape[1], 2}};
}

void check_vector(const OperandCheck& check, std::size_t i, const char* name,
                  std::int64_t columns) {
  check.floats(i, name, {1});
  check.shape(i, name, {columns});
}

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("norm", inputs);
  check.count(2, 3);
  const TensorType& x = check.floats(0, "x", {2, 3});
  check_vector(check, 1, "weight", columns_of(x));
  if (inputs.size() == 3) check_vector(check, 2, "bias", columns_of(x));
  return {TensorType(x.dtype, x.shape), stats_type(x)};
}

GradientRule gradient(TypeSpan inputs, TypeSpan, const Attributes&) {
  const bool bias = inputs.size() == 3;
  GradientRule rule{
      {{"norm_backward",
        {{Source::output_gradient, 0}, {Source::input, 0}, {Source::input, 1}, {Source::output, 1}},
        {{"bias", bias ? 1.0 : 0.0}},
        false,
        bias ? 3 : 2}},
      {{0, {Source::result, 0}}, {1, {Source::result, 1}}}};
  if (bias) rule.input_gradients.push_back({2, {Source::result, 2}});
  return rule;
}

Types infer_backward(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("norm_backward", inputs);
  check.count(4, 5);
  const TensorType& dy = check.floats(0, "dy", {2, 3});
  const TensorType& x = check.floats(1, "x", {2, 3});
  check.shape(1, "x", dy.shape);
  check_vector(check, 2, "weight", columns_of(x));
  check.dtype(3, "stats", DType::f32);
  check.shape(3, "stats", stats_type(x).shape);
  if (inputs.size() == 5) {
    check.floats(4, "dsum", {2, 3});
    check.shape(4, "dsum", x.shape);
  }
  const TensorType dweight(check.gradient_dtype(attributes, inputs[2].dtype), {columns_of(x)});
  Types types{TensorType(x.dtype, x.shape), dweight};
  if (attributes.integer("bias") != 0) types.push_back(dweight);
  return types;
}

Types infer_residual(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("residual_norm", inputs);
  const bool bias = attributes.integer("bias") != 0, drops = attributes.real("p", 0) > 0;
  const std::size_t count = 3u + (bias ? 1u : 0u) + (drops ? 1u : 0u);
  check.count(count, count);
  const TensorType& x = check.floats(0, "x", {2});
  check.shape(1, "delta", x.shape);
  check.dtype(1, "delta", x.dtype);
  check_vector(check, 2, "weight", columns_of(x));
  if (bias) check_vector(check, 3, "bias", columns_of(x));
  if (drops) check.random(count - 1, x.shape.rows(), attributes.integer("sequence"));
  const TensorType type(x.dtype, x.shape);
  return {type, type, stats_type(x)};
}

std::string_view rule_residual(const Attributes& attributes) {
  return attributes.integer("bias") != 0 ? "n,n,,,n->n,n,n" : "n,n,,n->n,n,n";
}

GradientRule gradient_residual(TypeSpan inputs, TypeSpan, const Attributes& attributes) {
  const bool bias = attributes.integer("bias") != 0;
  GradientRule rule{{{"norm_backward",
                      {{Source::output_gradient, 1},
                       {Source::output, 0},
                       {Source::input, 2},
                       {Source::output, 2},
                       {Source::output_gradient, 0}},
                      {},
                      false,
                      bias ? 3 : 2}},
                    {{0, {Source::result, 0}}, {2, {Source::result, 1}}}};
  if (bias) rule.input_gradients.push_back({3, {Source::result, 2}});
  int ddelta = 0;
  if (attributes.real("p", 0) > 0) {
    const int rng = static_cast<int>(inputs.size()) - 1;
    rule.steps.push_back({"dropout", {{Source::result, 0}, {Source::input, rng}}, {}});
    ddelta = bias ? 3 : 2;
  }
  rule.input_gradients.push_back({1, {Source::result, ddelta}});
  return rule;
}

}  // namespace

std::int64_t norm_chunk_vectors(std::int64_t columns) {
  constexpr std::int64_t kChunkElements = 32768;
  return std::max<std::int64_t>(16, kChunkElements / std::max<std::int64_t>(1, columns));
}

const Operation& norm_operation() {
  static const Operation operation{.name = "norm",
                                   .infer = infer,
                                   .cost = cost_per_output<kForwardFlops>,
                                   .spread = "n,,->n,n",
                                   .gradient = gradient};
  return operation;
}

const Operation& norm_backward_operation() {
  static const Operation operation{.name = "norm_backward",
                                   .infer = infer_backward,
                                   .cost = cost_per_output<kBackwardFlops>,
                                   .spread = "n,n,,n,n->n,,",
                                   .aliases = {{0, 0}}};
  return operation;
}

const Operation& residual_norm_operation() {
  static const Operation operation{.name = "residual_norm",
                                   .infer = infer_residual,
                                   .cost = cost_per_output<kForwardFlops>,
                                   .spread = rule_residual,
                                   .gradient = gradient_residual};
  return operation;
}

}  // namespace strata::kernels

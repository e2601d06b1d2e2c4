#include "kernels/ops/attention.h"

#include <fmt/core.h>
#include <limits>

#include "core/error.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

/// Refuses a scale that is not positive or no normal fp32 number: kernels take maxima of scores
/// before they multiply by it, and keep it in fp32.
void check_scale(const char* name, const Attributes& attributes) {
  const double scale = attributes.real("scale");
  if (scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max())
    return;
  throw InvalidArgument(fmt::format(
      "{}: scale is {:f}, expected a positive number, such as 1 / sqrt(head size)", name, scale));
}

/// Checks q, k, v from input `first` on and rng after them; returns the batch.
std::int64_t check_operands(const OperandCheck& check, std::size_t first, std::size_t rng,
                            const char* name, const Attributes& attributes) {
  check_scale(name, attributes);
  const TensorType& q = check.floats(first, "q", {3});
  const TensorType& k = check.floats(first + 1, "k", {3});
  check.floats(first + 2, "v", {3});
  check.require(k.shape[0] == q.shape[0] && k.shape[2] == q.shape[2], first + 1, "k",
                "rows and head size of q, " + q.to_string());
  check.require(k.shape[1] > 0 && q.shape[1] % k.shape[1] == 0, first + 1, "k",
                fmt::format("a number of heads that divides q's {}", q.shape[1]));
  check.shape(first + 2, "v", k.shape);
  check.require(q.shape[2] <= kAttentionMaxHeadSize, first, "q",
                fmt::format("a head size of at most {}", kAttentionMaxHeadSize));
  const std::int64_t sequence = attributes.integer("sequence");
  const bool drops = attributes.real("p", 0) > 0;
  check.count(rng + (drops ? 1u : 0u), rng + (drops ? 1u : 0u));
  if (drops) check.random(rng, q.shape[0], sequence);
  return samples_of(name, q.shape[0], sequence);
}

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("attention", inputs);
  check.count(3, 4);
  const std::int64_t batch = check_operands(check, 0, 3, "attention", attributes);
  const TensorType& q = inputs[0];
  return {TensorType(q.dtype, q.shape),
          TensorType(DType::f32, {batch, q.shape[1], attributes.integer("sequence")})};
}

/// Counts, for each of `products`, 2 D flops per pair of a query and a key that it sees.
Cost cost_of(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes, const TensorType& q,
             double products) {
  constexpr double kSoftmaxFlops = 15;  // per pair
  Cost cost = memory_cost(inputs, outputs, attributes);
  const double sequence = attributes.real("sequence");
  const double pairs =
      static_cast<double>(q.shape[0]) * static_cast<double>(q.shape[1]) * (sequence + 1) / 2;
  cost.flops = pairs * (products * 2 * static_cast<double>(q.shape[2]) + kSoftmaxFlops);
  return cost;
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return cost_of(inputs, outputs, attributes, inputs[0], 2);
}

Cost cost_backward(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return cost_of(inputs, outputs, attributes, inputs[1], 5);
}

GradientRule gradient(TypeSpan inputs, TypeSpan, const Attributes&) {
  std::vector<GradientOperand> operands{{Source::output_gradient, 0}, {Source::input, 0},
                                        {Source::input, 1},           {Source::input, 2},
                                        {Source::output, 0},          {Source::output, 1}};
  if (inputs.size() == 4) operands.push_back({Source::input, 3});
  return {{{"attention_backward", std::move(operands), {}, false, 3}},
          {{0, {Source::result, 0}}, {1, {Source::result, 1}}, {2, {Source::result, 2}}}};
}

Types infer_backward(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("attention_backward", inputs);
  check.count(6, 7);
  const std::int64_t batch = check_operands(check, 1, 6, "attention_backward", attributes);
  const TensorType &q = inputs[1], &k = inputs[2], &v = inputs[3];
  check.floats(0, "do", {3});
  check.shape(0, "do", q.shape);
  check.floats(4, "o", {3});
  check.shape(4, "o", q.shape);
  check.dtype(5, "lse", DType::f32);
  check.shape(5, "lse", {batch, q.shape[1], attributes.integer("sequence")});
  return {TensorType(q.dtype, q.shape), TensorType(k.dtype, k.shape), TensorType(v.dtype, v.shape)};
}

}  // namespace

const Operation& attention_operation() {
  static const Operation operation{.name = "attention",
                                   .infer = infer,
                                   .cost = cost,
                                   .spread = "nh,nh,nh,n->nh,nh",
                                   .gradient = gradient};
  return operation;
}

const Operation& attention_backward_operation() {
  static const Operation operation{.name = "attention_backward",
                                   .infer = infer_backward,
                                   .cost = cost_backward,
                                   .spread = "nh,nh,nh,nh,nh,nh,n->nh,nh,nh"};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/rope.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

constexpr int kTableFlops = 100;  // per element, a sine or cosine in fp64

Types infer_table(TypeSpan inputs, const Attributes& attributes) {
  OperandCheck("rope_table", inputs).count(0, 0);
  const std::int64_t head_size = attributes.integer("head_size");
  if (head_size <= 0 || head_size % 2 != 0)
    throw InvalidArgument(
        fmt::format("rope_table: head_size is {}, expected an even number", head_size));
  const std::int64_t scaling = attributes.integer("scaling", 0);
  if (scaling < 0 || scaling > static_cast<std::int64_t>(RopeScalingKind::yarn))
    throw InvalidArgument(fmt::format(
        "rope_table: scaling is {}, expected 0 (none), 1 (linear), 2 (llama3) or 3 (yarn)",
        scaling));
  return {TensorType(DType::f32, {attributes.integer("sequence"), head_size})};
}

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("rope", inputs);
  check.count(2, 2);
  const TensorType& x = check.floats(0, "x", {3});
  check.require(x.shape[2] % 2 == 0, 0, "x", "an even head size");
  const std::int64_t sequence = attributes.integer("sequence");
  samples_of("rope", x.shape[0], sequence);
  const TensorType& table = inputs[1];
  check.dtype(1, "table", DType::f32);
  check.require(
      table.shape.ndim() == 2 && table.shape[0] >= sequence && table.shape[1] == x.shape[2], 1,
      "table", "at least " + Shape{sequence, x.shape[2]}.to_string());
  return {TensorType(x.dtype, x.shape)};
}

/// A rotation's transpose is its inverse.
GradientRule gradient(TypeSpan, TypeSpan, const Attributes& attributes) {
  const double flipped = attributes.integer("inverse", 0) == 0 ? 1 : 0;
  return {{{"rope", {{Source::output_gradient, 0}, {Source::input, 1}}, {{"inverse", flipped}}}},
          {{0, {Source::result, 0}}}};
}

}  // namespace

const Operation& rope_table_operation() {
  static const Operation operation{
      .name = "rope_table", .infer = infer_table, .cost = cost_per_output<kTableFlops>};
  return operation;
}

const Operation& rope_operation() {
  static const Operation operation{.name = "rope",
                                   .infer = infer,
                                   .cost = cost_per_output<3>,
                                   .spread = "nh,->nh",
                                   .gradient = gradient,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

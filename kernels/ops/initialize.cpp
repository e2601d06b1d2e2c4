#include "kernels/ops/initialize.h"

#include <fmt/core.h>
#include <cmath>

#include "core/error.h"
#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("initialize", inputs);
  check.count(0, 0);
  const double deviation = attributes.real("deviation", 0);
  if (!(deviation >= 0) || std::isinf(deviation))
    throw InvalidArgument(fmt::format(
        "initialize: deviation is {:f}, expected a number that is not negative", deviation));
  const bool remainder = static_cast<DType>(attributes.integer("dtype")) == DType::i16;
  return {TensorType(remainder ? DType::i16 : check.float_attribute(attributes, "dtype"),
                     {attributes.integer("rows")})};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  constexpr double kFlops = 50;  // fp64 and integer, per normal number
  Cost cost = memory_cost(inputs, outputs, attributes);
  if (attributes.real("deviation", 0) > 0)
    cost.flops = kFlops * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& initialize_operation() {
  static const Operation operation{.name = "initialize", .infer = infer, .cost = cost};
  return operation;
}

Attributes TensorInitializer::attributes(DType dtype, std::int64_t first,
                                         std::int64_t count) const {
  const auto high = [](std::uint64_t word) { return static_cast<double>(word >> 32); };
  const auto low = [](std::uint64_t word) {
    return static_cast<double>(static_cast<std::uint32_t>(word));
  };
  const auto seed_word = static_cast<std::uint64_t>(seed);
  return {{"dtype", static_cast<double>(dtype)},
          {"rows", static_cast<double>(count)},
          {"deviation", deviation},
          {"constant", constant},
          {"seed_high", high(seed_word)},
          {"seed_low", low(seed_word)},
          {"tensor_high", high(tensor)},
          {"tensor_low", low(tensor)},
          {"first", static_cast<double>(first)}};
}

}  // namespace strata::kernels

#include "kernels/ops/optimizer_operands.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

void check_stochastic_source(std::string_view operation, TypeSpan inputs, std::size_t i) {
  OperandCheck(operation, inputs).dtype(i, "rng", DType::i64);
  if (inputs[i].shape.ndim() != 1 || inputs[i].shape.elements() < 2)
    throw InvalidArgument(
        fmt::format("{}: rng is {}, expected i64 of at least 2 elements, seed and step", operation,
                    inputs[i].to_string()));
}

Types optimizer_outputs(std::string_view operation, TypeSpan inputs, const Attributes& attributes,
                        bool packed, std::span<const std::string_view> moments) {
  const OperandCheck check(operation, inputs);
  const std::size_t first_moment = packed ? 2 : 1;
  const std::size_t states = first_moment + moments.size();
  check.count(states + 2, states + 3);
  const auto range = [&](std::size_t i, std::string_view name) {
    check.shape(i, name, inputs[0].shape);
    check.contiguous(i, name);
  };
  if (packed) {
    check.dtype(0, "parameter", DType::bf16);
    check.dtype(1, "remainder", DType::i16);
    range(1, "remainder");
  } else {
    check.dtype(0, "master", DType::f32);
  }
  range(0, packed ? "parameter" : "master");
  const bool stochastic = inputs[first_moment].dtype == DType::bf16;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (i == 0)
      check.require(stochastic || inputs[first_moment].dtype == DType::f32, first_moment,
                    moments[0], "fp32 or bf16");
    else
      check.dtype(first_moment + i, moments[i], inputs[first_moment].dtype);
    range(first_moment + i, moments[i]);
  }
  check.floats(states, "gradient");
  range(states, "gradient");
  check.type(states + 1, "control", {DType::u8, {sizeof(StepControl)}});
  check.count(states + (stochastic ? 3 : 2), states + (stochastic ? 3 : 2));
  if (stochastic) check_stochastic_source(operation, inputs, states + 2);
  Types outputs(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  if (!packed && attributes.has("parameter_dtype"))
    outputs.emplace_back(check.float_attribute(attributes, "parameter_dtype"), inputs[0].shape);
  return outputs;
}

}  // namespace strata::kernels

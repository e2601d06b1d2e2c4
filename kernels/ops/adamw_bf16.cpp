#include "kernels/ops/adamw_bf16.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/operand_check.h"
#include "kernels/ops/optimizer_operands.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("adamw_bf16", inputs);
  check.count(6, 6);
  constexpr std::string_view kNames[] = {"weight", "moment1", "moment2", "gradient"};
  for (std::size_t i = 0; i < 4; ++i) {
    if (i < 3)
      check.dtype(i, kNames[i], DType::bf16);
    else
      check.require(inputs[i].dtype == DType::bf16 || inputs[i].dtype == DType::f32, i, kNames[i],
                    "bf16 or fp32");
    check.shape(i, kNames[i], inputs[0].shape);
    check.contiguous(i, kNames[i]);
  }
  check.type(4, "control", {DType::u8, {sizeof(StepControl)}});
  check_stochastic_source("adamw_bf16", inputs, 5);
  return {inputs[0], inputs[1], inputs[2]};
}

}  // namespace

const Operation& adamw_bf16_operation() {
  static const Operation operation{.name = "adamw_bf16",
                                   .infer = infer,
                                   .cost = cost_per_output<15>,
                                   .spread = "n,n,n,n,,*->n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/early_control.h"

#include "core/error.h"
#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_control.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  const OperandCheck check("early_control", inputs);
  check.count(1, 1);
  check.type(0, "state", {DType::u8, {static_cast<std::int64_t>(sizeof(StepState))}});
  if (StepRules::from(attributes).needs_gradient())
    throw InvalidArgument(
        "early_control: the rules clip, scale the loss or skip steps, so the control depends on "
        "the whole gradient; use step_control and update after it");
  return {{DType::u8, {static_cast<std::int64_t>(sizeof(StepControl))}}};
}

}  // namespace

const Operation& early_control_operation() {
  static const Operation operation{.name = "early_control", .infer = infer, .cost = memory_cost};
  return operation;
}

}  // namespace strata::kernels

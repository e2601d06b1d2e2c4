#include "kernels/ops/add_loss.h"

#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("add_loss", inputs);
  check.count(2, 2);
  check.type(0, "word", {DType::i64, {AgreedWord::kWords}});
  check.type(1, "loss", {DType::f64, {1}});
  return {inputs[0]};
}

}  // namespace

const Operation& add_loss_operation() {
  static const Operation operation{.name = "add_loss",
                                   .infer = infer,
                                   .cost = memory_cost,
                                   .spread = kAlike,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/add_loss.h"

#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  expect_inputs("add_loss", inputs, 2, 2);
  expect_type("add_loss", inputs, 0, {DType::i64, {AgreedWord::kWords}});
  expect_type("add_loss", inputs, 1, {DType::f64, {1}});
  return {inputs[0]};
}

}  // namespace

const Operation& add_loss_operation() {
  static const Operation operation{
      .name = "add_loss", .infer = infer, .cost = memory_cost, .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/norm_squares.h"

#include "kernels/ops/operand_check.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("norm_squares", inputs);
  check.count(2, 2);
  check.type(0, "word", {DType::i64, {AgreedWord::kWords}});
  check.floats(1, "gradient");
  check.contiguous(1, "gradient");
  return {inputs[0]};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 2.0 * static_cast<double>(inputs[1].shape.elements());
  return cost;
}

}  // namespace

const Operation& norm_squares_operation() {
  static const Operation operation{
      .name = "norm_squares", .infer = infer, .cost = cost, .spread = "+,n->", .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

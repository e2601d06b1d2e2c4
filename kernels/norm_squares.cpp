#include "kernels/norm_squares.h"

#include "kernels/infer_checks.h"
#include "kernels/step_state.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes&) {
  expect_inputs("norm_squares", inputs, 2, 2);
  expect_type("norm_squares", inputs, 0, {DType::i64, {AgreedWord::kWords}});
  expect_dtype("norm_squares", inputs, 1, {DType::f32, DType::bf16});
  expect_contiguous("norm_squares", inputs, 1);
  return {inputs[0]};
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 2.0 * static_cast<double>(inputs[1].shape.elements());
  return cost;
}

/// One word per worker: integer additions, so who added what does not matter.
std::int64_t workspace(TypeSpan, TypeSpan, const Attributes&, const DeviceCapabilities& device) {
  return device.workers * AgreedWord::kWords * std::int64_t{sizeof(std::int64_t)};
}

}  // namespace

const Operation& norm_squares_operation() {
  static const Operation operation{.name = "norm_squares",
                                   .infer = infer,
                                   .cost = cost,
                                   .workspace = workspace,
                                   .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels

#include "kernels/ops/lion.h"

#include "kernels/ops/optimizer_operands.h"

namespace strata::kernels {
namespace {

constexpr std::string_view kMoments[] = {"m"};

Types infer(TypeSpan inputs, const Attributes& attributes) {
  return optimizer_outputs("lion", inputs, attributes, false, kMoments);
}

Types infer_packed(TypeSpan inputs, const Attributes& attributes) {
  return optimizer_outputs("lion_packed", inputs, attributes, true, kMoments);
}

Cost cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  Cost cost = memory_cost(inputs, outputs, attributes);
  cost.flops = 9.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

}  // namespace

const Operation& lion_operation() {
  static const Operation operation{.name = "lion",
                                   .infer = infer,
                                   .cost = cost,
                                   .spread = "n,n,n,,*->n,n,n",
                                   .aliases = {{0, 0}, {1, 1}},
                                   .predicated = true};
  return operation;
}

const Operation& lion_packed_operation() {
  static const Operation operation{.name = "lion_packed",
                                   .infer = infer_packed,
                                   .cost = cost,
                                   .spread = "n,n,n,n,,*->n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

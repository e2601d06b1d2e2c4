#include "kernels/ops/lion.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/optimizer_operands.h"

namespace strata::kernels {
namespace {

constexpr std::string_view kMoments[] = {"m"};

template <bool kPacked>
Types infer(TypeSpan inputs, const Attributes& attributes) {
  return optimizer_outputs(kPacked ? "lion_packed" : "lion", inputs, attributes, kPacked, kMoments);
}

}  // namespace

const Operation& lion_operation() {
  static const Operation operation{.name = "lion",
                                   .infer = infer<false>,
                                   .cost = cost_per_output<9>,
                                   .spread = "n,n,n,,*->n,n,n",
                                   .aliases = {{0, 0}, {1, 1}},
                                   .predicated = true};
  return operation;
}

const Operation& lion_packed_operation() {
  static const Operation operation{.name = "lion_packed",
                                   .infer = infer<true>,
                                   .cost = cost_per_output<9>,
                                   .spread = "n,n,n,n,,*->n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

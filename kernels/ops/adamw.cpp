#include "kernels/ops/adamw.h"

#include "kernels/ops/element_cost.h"
#include "kernels/ops/optimizer_operands.h"

namespace strata::kernels {
namespace {

constexpr std::string_view kMoments[] = {"m", "v"};

template <bool kPacked>
Types infer(TypeSpan inputs, const Attributes& attributes) {
  return optimizer_outputs(kPacked ? "adamw_packed" : "adamw", inputs, attributes, kPacked,
                           kMoments);
}

}  // namespace

const Operation& adamw_operation() {
  static const Operation operation{.name = "adamw",
                                   .infer = infer<false>,
                                   .cost = cost_per_output<15>,
                                   .spread = "n,n,n,n,,*->n,n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}},
                                   .predicated = true};
  return operation;
}

const Operation& adamw_packed_operation() {
  static const Operation operation{.name = "adamw_packed",
                                   .infer = infer<true>,
                                   .cost = cost_per_output<15>,
                                   .spread = "n,n,n,n,n,,*->n,n,n,n",
                                   .aliases = {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
                                   .predicated = true};
  return operation;
}

}  // namespace strata::kernels

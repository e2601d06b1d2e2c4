// Every operation, by name. A new one is two lines: its header and its entry.
#include <algorithm>
#include <array>

#include "core/check.h"
#include "kernels/head_loss.h"
#include "kernels/linear.h"
#include "kernels/operation.h"

namespace strata::kernels {
namespace {

using Declaration = const Operation& (*)();

constexpr Declaration kOperations[] = {
    head_loss_eval_operation,         head_loss_operation,
    linear_backward_bias_operation,   linear_backward_input_operation,
    linear_backward_weight_operation, linear_operation,
};

double bytes_of(TypeSpan types) {
  double bytes = 0;
  for (const TensorType& type : types)
    bytes += static_cast<double>(type.shape.elements() * size_of(type.dtype));
  return bytes;
}

}  // namespace

Cost memory_cost(TypeSpan inputs, TypeSpan outputs, const Attributes&) {
  return {0, bytes_of(inputs) + bytes_of(outputs)};
}

const Operation& find_operation(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kOperations), std::end(kOperations),
                   [&](Declaration declaration) { return declaration().name == name; });
  STRATA_CHECK(found != std::end(kOperations), "unknown operation", name);
  return (*found)();
}

}  // namespace strata::kernels

// Costs of operations that do the same work for each element.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Returns memory_cost with kFlops for each element of the first output.
template <int kFlops>
Cost cost_per_output(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return {kFlops * static_cast<double>(outputs[0].shape.elements()),
          memory_cost(inputs, outputs, attributes).bytes};
}

/// Returns memory_cost with kFlops for each element of the first input.
template <int kFlops>
Cost cost_per_input(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes) {
  return {kFlops * static_cast<double>(inputs[0].shape.elements()),
          memory_cost(inputs, outputs, attributes).bytes};
}

}  // namespace strata::kernels

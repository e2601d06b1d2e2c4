// Differentiates a Graph in reverse mode, with one gradient rule per operation.
#pragma once

#include "runtime/graph/graph.h"

namespace strata::runtime {

struct DifferentiateOptions {
  DType produced = DType::f32;    ///< type in which operations write parameter gradients
  std::vector<bool> frozen = {};  ///< one per unit: true if it gets no gradient; empty: all do
};

/// Appends the backward pass of every node whose outputs have gradients (head_loss starts them),
/// and creates one flat gradient root per unit that is not frozen (Graph::unit_gradients), whose
/// segments the backward operations write in place. Contributions to one value are added in the
/// order in which the backward pass meets them, before anything else reads the sum. Gaps of a
/// unit's gradient are filled with zeros. Throws InvalidArgument naming an operation without a rule
/// that stands between parameters and loss.
void differentiate(Graph& graph, const DifferentiateOptions& options);

}  // namespace strata::runtime

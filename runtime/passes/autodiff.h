// Reverse-mode differentiation of a Graph from one gradient rule per operation.
#pragma once

#include "runtime/graph/graph.h"

namespace strata::runtime {

struct DifferentiateOptions {
  DType produced = DType::f32;    ///< element type of parameter gradients as operations write them
  std::vector<bool> frozen = {};  ///< by unit: it gets no gradient; empty: none is
};

/// Appends the backward pass of every node whose outputs have gradients (head_loss makes them from
/// nothing) and creates one flat gradient root per unit that is not frozen (Graph::unit_gradients),
/// whose segments the backward operations write in place. Contributions to one value are added in
/// the order in which the backward pass meets them, before anything else sees the sum. Gaps of a
/// unit's gradient are filled with zeros. Throws InvalidArgument naming an operation without a rule
/// that stands between parameters and loss.
void differentiate(Graph& graph, const DifferentiateOptions& options);

}  // namespace strata::runtime

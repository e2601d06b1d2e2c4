// Writes zeros where no operation writes a unit's gradient.
#pragma once

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Fills alignment gaps and unused parameters of every unit's gradient, in the version of
/// Graph::unit_gradients. One node fills all gaps of a unit, before the first that writes to it.
void fill_gradient_gaps(Graph& graph);

}  // namespace strata::runtime

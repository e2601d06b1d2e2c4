// Activation offload as a pass: values that wait between forward and backward pass wait elsewhere.
#pragma once

#include "runtime/graph.h"
#include "runtime/plan.h"

namespace strata::offload {

/// Values that the forward pass of the Plan's blocks makes, that are at least as large as it says
/// and that the backward pass reads as they are, go to host memory (and on to the disk) after their
/// last use in the forward pass and come back before their first in the backward pass. `graph` is
/// differentiated and recomputed. Values whose parts are of several versions stay: nothing can
/// name them as a whole.
void offload_activations(runtime::Graph& graph, const runtime::ActivationOffload& plan);

}  // namespace strata::offload

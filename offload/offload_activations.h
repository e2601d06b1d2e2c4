// Activation offload as a pass: values that wait between forward and backward pass do so elsewhere.
#pragma once

#include <map>

#include "runtime/passes/saved_values.h"

namespace strata::offload {

/// Moves values whose action is SavedAction::host or disk and that the backward pass reads: they
/// leave after their last use in the forward pass and return before their first in the backward
/// pass. `graph` must be differentiated and have its recomputation.
void offload_activations(runtime::Graph& graph,
                         const std::map<runtime::ValueId, runtime::SavedAction>& actions);

}  // namespace strata::offload

// Activation offload as a pass: values that wait between forward and backward pass wait elsewhere.
#pragma once

#include <map>

#include "runtime/passes/saved_values.h"

namespace strata::offload {

/// Values whose action is SavedAction::host or disk and that the backward pass reads go there after
/// their last use in the forward pass and come back before their first in the backward pass.
/// `graph` is differentiated and recomputed.
void offload_activations(runtime::Graph& graph,
                         const std::map<runtime::ValueId, runtime::SavedAction>& actions);

}  // namespace strata::offload

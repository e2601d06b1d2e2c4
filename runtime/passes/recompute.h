// Recomputation as a pass over a differentiated Graph.
#pragma once

#include <map>

#include "runtime/passes/saved_values.h"

namespace strata::runtime {

/// Backward nodes no longer read values whose action is SavedAction::recompute: they read copies
/// that the same operations make again, from values that are there, and from what these operations
/// make of them in between. What belongs together (a run of blocks; attention; one norm) is
/// made again at the start of the backward pass of the block that uses it first; one node just
/// before its first use. Operations are pure and random numbers are keyed, so the
/// copies have the same bits; of a residual_norm whose sum is there only the norm is repeated.
/// `actions` names all saved values (saved_actions). Throws InvalidArgument when something
/// overwrites in place what is read again, so that the copies would be made from a later version.
void recompute(Graph& graph, const std::map<ValueId, SavedAction>& actions);

}  // namespace strata::runtime

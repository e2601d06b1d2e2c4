// Recomputation, as a pass over a differentiated Graph.
#pragma once

#include <map>

#include "runtime/passes/saved_values.h"

namespace strata::runtime {

/// Makes backward nodes read copies of values whose action is SavedAction::recompute. The same
/// operations make these copies, from values that are kept and from other copies. Operations that
/// feed one another (a run of blocks; attention) run again at the start of the backward pass of the
/// block that uses them first, a single one just before its first use. Operations are pure and
/// random numbers are keyed, so copies have the same bits; a residual_norm whose sum is kept
/// repeats only the norm. `actions` names all saved values (saved_actions). Throws InvalidArgument
/// if an input of the copies is overwritten in place before they are made.
void recompute(Graph& graph, const std::map<ValueId, SavedAction>& actions);

}  // namespace strata::runtime

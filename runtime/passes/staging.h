// The border between the host and a running Program. While a Program runs, the host touches only
// pinned memory: instructions copy its inputs in at the start and its results out at the end. So a
// step can be enqueued while the one before still runs. On a device the copies are transfers.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Returns the name of the pinned twin of persistent device storage.
inline std::string host_name(const std::string& name) { return "host/" + name; }

/// Adds copies of every input (Role::input, device tier) that a node reads from its pinned twin,
/// before the first node. Inputs that no node reads have a twin only, so that the writer of inputs
/// need not know the model.
void stage_inputs(Graph& graph);

/// Adds a copy of persistent `name`, as its last writer leaves it, to its pinned twin, after the
/// last node. Ends the process if no node writes the whole of it.
void stage_output(Graph& graph, const std::string& name);

}  // namespace strata::runtime

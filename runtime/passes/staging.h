// The border between the host and a running Program. While a Program runs the host touches only
// pinned memory: instructions copy its inputs in at the start and results out at the end. So a step
// can be enqueued while the one before still runs, and on a device the same copies are transfers.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Name of the pinned twin of persistent device storage.
inline std::string host_name(const std::string& name) { return "host/" + name; }

/// Every input (Role::input, device tier) that a node reads is copied from its pinned twin before
/// the first node. Inputs that nobody reads have a twin only, so that whoever writes inputs need
/// not know the model.
void stage_inputs(Graph& graph);

/// Persistent `name`, as the last node that writes it leaves it, is copied to its pinned twin
/// after the last node. Ends the process when no node writes the whole of it.
void stage_output(Graph& graph, const std::string& name);

}  // namespace strata::runtime

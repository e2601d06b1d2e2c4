#pragma once

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Lets outputs take the storage of inputs if the operation allows it and nothing reads the input
/// later: output roots become views. The only user of Operation::aliases.
void alias_in_place(Graph& graph);

}  // namespace strata::runtime

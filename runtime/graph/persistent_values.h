// Storage that outlives a Program, as values of a Graph: found by name, added where it is not
// there.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Returns a persistent root by name, added to the graph when it is not there yet: the version that
/// it holds when the Program starts.
ValueId persistent_value(Graph& graph, const std::string& name, const kernels::TensorType& type,
                         Role role, Tier tier = Tier::device);

/// Returns a persistent root by name, whatever its version, added when it is not there yet.
ValueId persistent_root(Graph& graph, const std::string& name, const kernels::TensorType& type,
                        Role role, Tier tier = Tier::device);

/// Returns the seed and the step, an input of every training Graph.
ValueId random_input(const Graph& graph);

/// Returns a view of elements [begin, end) of a flat value.
ValueId flat_view(Graph& graph, ValueId of, std::int64_t begin, std::int64_t end, std::string name);

}  // namespace strata::runtime

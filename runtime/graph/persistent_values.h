// Finds storage that outlives a Program as values of a Graph, by name, or adds it.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Returns a persistent root by name, in the version that it holds when the Program starts. Adds it
/// to the graph if it is not there yet.
ValueId persistent_value(Graph& graph, const std::string& name, const kernels::TensorType& type,
                         Role role, Tier tier = Tier::device);

/// Returns a persistent root by name, in any version; adds it if it is not there yet.
ValueId persistent_root(Graph& graph, const std::string& name, const kernels::TensorType& type,
                        Role role, Tier tier = Tier::device);

/// Returns the input of every training Graph that holds seed and step.
ValueId random_input(const Graph& graph);

/// Returns a view of elements [begin, end) of a flat value.
ValueId flat_view(Graph& graph, ValueId of, std::int64_t begin, std::int64_t end, std::string name);

}  // namespace strata::runtime

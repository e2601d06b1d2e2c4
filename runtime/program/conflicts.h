// Finds the nodes of a Graph that must keep their order, whatever a schedule does.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Returns, for each node, the earlier nodes that touch the same bytes of a root, one of the two
/// writing: these conflicts are data dependences and reuse of storage by the next version. A
/// strided view counts from its first to its last byte, as in runtime/program/waits. Only the
/// nearest conflicts are listed; most that follow from others are left out.
std::vector<std::vector<int>> find_conflicts(const Graph& graph);

}  // namespace strata::runtime

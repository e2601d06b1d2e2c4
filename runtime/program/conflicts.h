// Which nodes of a Graph must keep their order, whatever a schedule does.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// For each node the earlier nodes that touch bytes of a root which it touches, too, when one of
/// the two writes them: data, and reuse of the same storage by the next version. A strided view
/// counts from its first to its last byte, as in runtime/program/waits. Only the nearest: what
/// follows from others is left out in part.
std::vector<std::vector<int>> find_conflicts(const Graph& graph);

}  // namespace strata::runtime

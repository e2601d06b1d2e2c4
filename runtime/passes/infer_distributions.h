// Infers what operations make of the distributions of their operands, and proves that they fit.
#pragma once

#include <string>

#include "comm/mesh.h"
#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Gives every value that a node touches its distribution on ranks of `mesh`, after the last pass;
/// along axes of one rank all is replicated. Starts from what is declared (graph.h, Value) and
/// applies the rules of operations and collectives. Describes the first operand that does not fit
/// its node, such as a partial sum in a product because a reduction is missing; "" if all fit.
std::string infer_distributions(Graph& graph, const comm::Mesh& mesh);

}  // namespace strata::runtime

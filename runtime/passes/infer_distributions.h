// What operations make of the distributions of their operands, and the proof that they fit.
#pragma once

#include <string>

#include "comm/mesh.h"
#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Gives every value that a node touches its distribution on ranks of `mesh`, once passes are done;
/// along axes of one rank all is replicated. Starts from what is declared (graph.h, Value), goes on
/// by the rules of operations and collectives. Returns the first operand that does not fit its
/// node, in words: a sum over ranks left out, a partial sum in a product; "" when there is none.
std::string infer_distributions(Graph& graph, const comm::Mesh& mesh);

}  // namespace strata::runtime

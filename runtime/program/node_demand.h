// What a node of a Graph asks of a machine.
#pragma once

#include "comm/seat.h"
#include "machine/demand.h"
#include "runtime/graph/graph.h"

namespace strata::runtime {

/// From the operation's own cost, the bytes of its operands and, of a collective, what this rank
/// sends. Products count in the type of their first operand of floats.
machine::Demand demand_of(const Graph& graph, const Node& node, const comm::MeshSeat& where);

}  // namespace strata::runtime

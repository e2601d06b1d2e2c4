// What a node of a Graph asks of a machine.
#pragma once

#include "comm/seat.h"
#include "machine/demand.h"
#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Adds to the operation's own cost what the node moves: a collective what this rank sends, a
/// transfer the bytes of its output. Demand::type is that of the first operand of floats; fp32
/// where there is none.
machine::Demand demand_of(const Graph& graph, const Node& node, const comm::MeshSeat& where);

}  // namespace strata::runtime

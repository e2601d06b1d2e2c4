// Computes what a node of a Graph asks of a machine.
#pragma once

#include "comm/seat.h"
#include "machine/demand.h"
#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Adds the bytes that the node moves to the operation's own cost: for a collective those that this
/// rank sends, for a transfer those of its output. Demand::type is the type of the first operand of
/// floats; fp32 if there is none. Demand::signature is equal for nodes of equal operation, queue,
/// types and attributes, or of equal collectives, in every run of every build.
machine::Demand demand_of(const Graph& graph, const Node& node, const comm::MeshSeat& where);

}  // namespace strata::runtime

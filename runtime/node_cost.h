// What a node of a Graph costs on a Machine, as far as the schedule must know.
#pragma once

#include <cstdint>

#include "machine/machine.h"
#include "runtime/graph.h"

namespace strata::runtime {

/// How long a node takes alone on the machine, ns, from its operation's cost and the bytes of its
/// operands. A product counts at the rate of the type of its first operand.
std::int64_t cost_ns(const machine::Machine& machine, const Graph& graph, const Node& node);

}  // namespace strata::runtime

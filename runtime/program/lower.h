// Lowers a Graph to a Program: in-place aliases, addresses, queues and waits.
#pragma once

#include <string>
#include <variant>

#include "comm/seat.h"
#include "machine/machine.h"
#include "runtime/graph/graph.h"
#include "runtime/program/persistent_layout.h"
#include "runtime/program/program.h"
#include "runtime/program/schedule_graph.h"
#include "runtime/program/shortage.h"

namespace strata::runtime {

struct LowerOptions {
  std::string name;  ///< name of the Program
  machine::Machine machine;
  comm::MeshSeat where = {};  ///< this rank
};

/// Lowers `graph`, whose node order is final, over `persistent`, which must already hold all of its
/// persistent roots. Transfers stay in their place of the Graph, which is correct but overlaps
/// little. Waits cover every pair of instructions on different queues whose byte ranges overlap
/// with at least one write, for data and storage reuse alike, transitively reduced.
Program lower(Graph graph, const PersistentLayout& persistent, const LowerOptions& options);

/// Lowers in the order and at the places of a schedule, or returns what its budgets lack.
std::variant<Program, Shortage> lower_scheduled(Graph graph, const PersistentLayout& persistent,
                                                const LowerOptions& options,
                                                const Scheduling& scheduling);

}  // namespace strata::runtime

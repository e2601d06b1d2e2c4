// Graph to Program: in-place aliases, addresses, queues and waits.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "machine/machine.h"
#include "runtime/graph.h"
#include "runtime/program.h"
#include "runtime/schedule_graph.h"

namespace strata::runtime {

struct LowerOptions {
  std::string name;  ///< of the Program
  machine::Machine machine;
  const comm::Communicator* communicator =
      nullptr;  ///< for workspaces; may be null without collectives
  /// Null: transfers stay where they stand in the Graph, which is correct and overlaps little.
  const Scheduling* scheduling = nullptr;
};

/// Lowers `graph` (its node order is final, unless it is to be scheduled) over `persistent`, which
/// must already hold all of its persistent roots. Waits cover every pair of instructions on
/// different queues whose byte ranges overlap with at least one write, data and storage reuse
/// alike, transitively reduced.
Program lower(Graph graph, const PersistentLayout& persistent, const LowerOptions& options);

}  // namespace strata::runtime

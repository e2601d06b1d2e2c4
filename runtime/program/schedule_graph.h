// The schedule of a Graph: the scheduler's answer becomes an order of nodes and places of roots.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/program/graph_problem.h"

namespace strata::runtime {

struct ScheduledGraph {
  std::map<ValueId, std::int64_t> offset_bytes;  ///< of transient roots, in their tier's region
  TierBytes region_bytes{};
  TierBytes live_bytes{};  ///< most of it in use at one time, as simulated
  std::int64_t makespan_ns = 0;
  TierBytes floor_bytes{};  ///< the smallest budgets that work, what is kept included
  /// The tier whose budget is below its floor: then only the floors are set; the Graph is
  /// unchanged.
  std::optional<Tier> short_tier;
};

/// Whether there is anything to place: gathers, copies, disk transfers.
bool has_transfers(const Graph& graph);

/// Puts `graph.nodes` in the order of the schedule, and `workspaces` (one value per node or
/// kNoValue) along with them. Copies that survive until their next use take its place, and their
/// transfers go. `persistent_bytes` is what the arenas hold besides.
ScheduledGraph schedule_graph(Graph& graph, std::vector<ValueId>& workspaces,
                              const machine::Machine& machine, const Scheduling& scheduling,
                              const TierBytes& persistent_bytes);

}  // namespace strata::runtime

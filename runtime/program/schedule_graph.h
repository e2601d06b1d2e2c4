// Schedules a Graph: the scheduler's answer becomes an order of nodes and places of roots.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/program/graph_problem.h"

namespace strata::runtime {

struct ScheduledGraph {
  std::map<ValueId, std::int64_t> offset_bytes;  ///< keyed by transient root, in its tier's region
  TierBytes region_bytes{};
  TierBytes live_bytes{};  ///< most bytes in use at one time, as simulated
  std::int64_t makespan_ns = 0;
  TierBytes floor_bytes{};  ///< smallest budgets that work, including persistent storage
  /// The tier whose budget is below its floor. If set, only the floors are set as well, and the
  /// Graph is unchanged.
  std::optional<Tier> short_tier;
};

/// True if there are transfers to place: gathers, copies, disk transfers.
bool has_transfers(const Graph& graph);

/// Puts `graph.nodes`, and `workspaces` (one value per node, or kNoValue), in the order of the
/// schedule. Where a copy survives until its next use, readers of the next copy read it instead,
/// and the transfers between are dropped. `persistent_bytes` is what the arenas hold in addition.
ScheduledGraph schedule_graph(Graph& graph, std::vector<ValueId>& workspaces,
                              const machine::Machine& machine, const Scheduling& scheduling,
                              const TierBytes& persistent_bytes);

}  // namespace strata::runtime

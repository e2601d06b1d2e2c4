// The schedule applied to a Graph: nodes become tasks, transient roots buffers, and the answer an
// order of nodes and places of roots.
#pragma once

#include <map>
#include <vector>

#include "runtime/graph.h"
#include "runtime/machine_rates.h"
#include "runtime/plan.h"

namespace strata::runtime {

struct Scheduling {
  TransferLimits limits;
  TierBytes budget_bytes = kUnlimitedBytes;  ///< of whole arenas
  MachineRates rates;
};

struct ScheduledGraph {
  std::map<ValueId, std::int64_t> offset_bytes;  ///< of transient roots, in their tier's region
  TierBytes region_bytes{};
  TierBytes live_bytes{};  ///< most of it in use at one time, as simulated
};

/// The queue that a node stands on in a Program. A CPU that plays the device does the host's work
/// too: side by side they would only slow one another down.
Queue queue_of(const Node& node, bool host_is_device);

/// Whether there is anything to place: gathers, copies, disk transfers.
bool has_transfers(const Graph& graph);

/// Puts `graph.nodes` in the order of the schedule, and `workspaces` (one value per node or
/// kNoValue) along with them. Copies that survive until their next use take its place, and their
/// transfers go. `persistent_bytes` is what the arenas hold besides. Throws OutOfMemory naming the
/// tier when its budget is below the smallest that works.
ScheduledGraph schedule_graph(Graph& graph, std::vector<ValueId>& workspaces,
                              const Scheduling& scheduling, const TierBytes& persistent_bytes,
                              bool host_is_device);

}  // namespace strata::runtime

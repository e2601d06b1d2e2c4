// A Graph as a problem for the scheduler: nodes become tasks, transient roots buffers.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"
#include "runtime/schedule/schedule.h"

namespace strata::runtime {

struct Scheduling {
  TransferLimits limits;
  TierBytes budget_bytes = kUnlimitedBytes;  ///< of whole arenas
};

/// Tiers 0 to kTiers - 1 of the problem are those of memory. Task i is node i.
struct GraphProblem {
  /// Bytes that are as the original, and how their root numbers that version.
  struct Copy {
    ValueId root;
    std::int32_t version;
  };

  ScheduleProblem problem;
  std::map<ValueId, int> buffer_of;                  ///< of a transient root
  std::vector<int> windows;                          ///< buffers of what is handed on
  std::vector<std::pair<Copy, ValueId>> gap_copies;  ///< per gap the earlier, root of the later
};

/// The queue that a node stands on in a Program. A CPU that plays the device does the host's work
/// too: side by side they would only slow one another down.
Queue queue_of(const Node& node, bool host_is_device);

/// `workspaces`: one value per node or kNoValue. `persistent_bytes` is what the arenas hold
/// besides.
GraphProblem pose_problem(const Graph& graph, const std::vector<ValueId>& workspaces,
                          const machine::Machine& machine, const Scheduling& scheduling,
                          const TierBytes& persistent_bytes);

}  // namespace strata::runtime

// Poses a Graph as a problem for the scheduler: nodes become tasks, transient roots become buffers.
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
  TierBytes budget_bytes = kUnlimitedBytes;  ///< budgets of whole arenas
  ScheduleEffort effort = ScheduleEffort::full;
};

/// Tiers 0 to kTiers - 1 of the problem are the tiers of memory. Task i is node i.
struct GraphProblem {
  /// A root that holds the original's bytes, and its own number for that version.
  struct Copy {
    ValueId root;
    std::int32_t version;
  };

  ScheduleProblem problem;
  std::map<ValueId, int> buffer_of;                  ///< transient root -> buffer
  std::vector<int> windows;                          ///< buffers of handed-on roots
  std::vector<std::pair<Copy, ValueId>> gap_copies;  ///< per gap the earlier, root of the later
};

/// Returns the queue that runs a node in a Program. A CPU that plays the device does the host's
/// work on the compute queue, too: side by side they would only slow one another down.
Queue queue_of(const Node& node, bool host_is_device);

/// Poses the problem. `workspaces` has one value per node, or kNoValue. `persistent_bytes` is what
/// the arenas hold in addition.
GraphProblem pose_problem(const Graph& graph, const std::vector<ValueId>& workspaces,
                          const machine::Machine& machine, const Scheduling& scheduling,
                          const TierBytes& persistent_bytes);

}  // namespace strata::runtime

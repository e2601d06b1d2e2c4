// The placement pass: in the given Graph, persistent values have homes in several tiers; afterwards
// every node finds its operands where it runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::offload {

/// A record on the disk that is read into pinned memory before the step that updates it.
struct ReadAhead {
  std::string name;  ///< name of the persistent root
  kernels::TensorType type;
  std::int64_t place_bytes = 0;  ///< place of its window in the pinned tier (Value::place_bytes)
  runtime::Distribution distribution;
};

/// The records to read ahead, and what this Graph does with them.
struct RecordsAhead {
  std::vector<ReadAhead> records;
  bool use = false;   ///< the Program before has read them: use those windows first
  bool read = false;  ///< read them at the end, for the next Program
};

/// Nodes of the host queue need their operands in host memory, all others on the device (except
/// copies). An operand elsewhere gets a transient copy: transfers fill it just before its first use
/// in one block and pass, and take it home just after its last use if it was written. This serial
/// order is correct, and the baseline of every overlap.
///
/// Operands on the disk move as whole roots, as do parameters and gradients to the device; others
/// as the range that is used. A node that writes only a part of a root on the disk ends the
/// process. Content that is only written under a predicate goes home under the same predicate.
void place_transfers(runtime::Graph& graph, const RecordsAhead& ahead = {});

}  // namespace strata::offload

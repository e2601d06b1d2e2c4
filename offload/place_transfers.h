// The placement pass: from a Graph whose persistent values have homes in several tiers to one in
// which every node finds its operands where it runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::offload {

/// A record of the disk that is read into pinned memory before the step that updates it.
struct ReadAhead {
  std::string name;  ///< of the persistent root
  kernels::TensorType type;
  std::int64_t place_bytes = 0;  ///< of its window, in the pinned tier (Value::place_bytes)
  runtime::Distribution distribution;
};

/// Which records are, and what this Graph has to do with them.
struct RecordsAhead {
  std::vector<ReadAhead> records;
  bool use = false;   ///< the Program before has read them: the first use finds them there
  bool read = false;  ///< at the end, for the next Program
};

/// Nodes of the host queue need their operands in host memory, all others on the device (but for
/// copies). An operand that lies elsewhere gets a transient copy there, filled by transfers just
/// before the first use of it in one block and pass, and taken home just after the last use when
/// it was written: the serial order, which is correct and the baseline of every overlap.
///
/// Parameters and gradients move to the device as a whole, and everything on the disk; other
/// operands as the range that is used. Operands in pieces of one root that overlap otherwise end
/// the process. What is only written under a predicate goes home under the same predicate.
void place_transfers(runtime::Graph& graph, const RecordsAhead& ahead = {});

}  // namespace strata::offload

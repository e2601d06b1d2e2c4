// Adds the times of a step's instructions up by operation, pass and queue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/report/program_timeline.h"

namespace strata::train {

/// The instructions of one operation, pass and queue in a step. Queues run beside one another, so
/// the times of all rows together are more than a step's.
struct OperationTotal {
  std::string operation, pass, queue;
  double instructions = 0;  ///< of a step
  double foreseen_ms = 0;
  std::optional<double> measured_ms;  ///< absent unless all of them were measured
};

/// Returns a row for each operation, pass and queue, in the order in which they first occur.
std::vector<OperationTotal> operation_totals(const std::vector<ProgramTimeline>& timelines);

}  // namespace strata::train

// Compares what was foreseen in one memory report with what a run measured in another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/report/stored_report.h"

namespace strata::train {

/// An operation in a pass on a queue; 0 ms where one of the reports has none.
struct OperationDifference {
  OperationTotal of;  ///< foreseen by the one report, measured by the other
  [[nodiscard]] double difference_ms() const;
};

/// Returns the operations of both reports, those that differ most first. Throws InvalidArgument if
/// the reports are of different models, or if nothing was measured in `measured`.
std::vector<OperationDifference> differences(const StoredReport& foreseen,
                                             const StoredReport& measured);

/// An amount of memory, in bytes.
struct MemoryDifference {
  std::string memory;  ///< "pinned arena", "process, highest"
  double foreseen = 0;
  std::optional<double> measured;  ///< nullopt: the run measured no instructions
  [[nodiscard]] double difference() const;
};

/// Returns arenas, the highest sums of buffers in them, the process and the device, those that
/// differ most first. Where an arena is that of its own device, what the device has in use also
/// holds what driver, libraries and other processes take.
std::vector<MemoryDifference> memory_differences(const StoredReport& foreseen,
                                                 const StoredReport& measured);

/// The step, the operations, memory, and settings that differ, for people.
std::string comparison_text(const StoredReport& foreseen, const StoredReport& measured);

/// The same as JSON: seconds of a step, `operations` and `memory` in the same order, and `settings`
/// that differ. Memory that was not measured is null; operations without times are left out.
std::string comparison_json(const StoredReport& foreseen, const StoredReport& measured);

}  // namespace strata::train

// Chooses the optimizer records that stay in host memory although their unit's tier is the disk.
#pragma once

#include <vector>

#include "step/step.h"

namespace strata::plan {

/// Lets records stay in host memory as long as this rank's `free_bytes` last: those that the next
/// forward pass needs first, since their transfers are the hardest to hide. Records that stay are
/// neither read nor written in a step. Only whole tiles stay.
void keep_records_in_host_memory(step::StepSettings& settings,
                                 const std::vector<runtime::ParameterUnit>& units,
                                 std::int64_t free_bytes);

/// Returns the bytes of pinned memory that records on the disk need as windows, so that they can be
/// read, updated and written at the same time.
std::int64_t window_bytes(const step::StepSettings& settings,
                          const std::vector<runtime::ParameterUnit>& units);

/// Returns the Plan of `settings` with records in `share` of the host memory that gradients,
/// parameters, windows of the disk and a snapshot leave free. A snapshot also copies the records
/// that stay.
[[nodiscard]] runtime::Plan with_resident_records(step::StepSettings settings,
                                                  const std::vector<runtime::ParameterUnit>& units,
                                                  double share);

}  // namespace strata::plan

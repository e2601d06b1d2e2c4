// Which optimizer records stay in host memory although the disk is their unit's tier.
#pragma once

#include <vector>

#include "step/step.h"

namespace strata::plan {

/// Lets records stay in host memory as long as `free_bytes` of this rank last: those that the next
/// forward pass needs first, because their way from the disk hides least. What stays is neither
/// read nor written in a step. Only whole tiles stay.
void keep_records_in_host_memory(step::StepSettings& settings,
                                 const std::vector<runtime::ParameterUnit>& units,
                                 std::int64_t free_bytes);

/// Bytes of pinned memory that the windows of records on the disk need to read, update and write
/// at the same time.
std::int64_t window_bytes(const step::StepSettings& settings,
                          const std::vector<runtime::ParameterUnit>& units);

}  // namespace strata::plan

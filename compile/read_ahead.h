// Chooses optimizer records to be read from the disk during a step, for the updates after it.
#pragma once

#include <cstdint>
#include <vector>

#include "offload/place_transfers.h"
#include "step/step.h"

namespace strata::compile {

/// Returns the first records of this rank that the updates need. As many are taken as have windows,
/// side by side from place 0, in at most `window_bytes` of pinned memory.
std::vector<offload::ReadAhead> records_read_ahead(const step::StepSettings& settings,
                                                   const std::vector<runtime::ParameterUnit>& units,
                                                   std::int64_t window_bytes);

}  // namespace strata::compile

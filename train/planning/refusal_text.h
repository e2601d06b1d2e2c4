// Says why nothing could be planned for a target of memory, and what would help.
#pragma once

#include <string>

#include "train/planning/planned_options.h"

namespace strata::train {

/// Why nothing fits and the least memory that works, in one line; then in a line each the given
/// settings that forbid what needs less, and the changes that save most (reasons_text.h).
std::string describe_refusal(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget);

/// True if the first line of a refusal names the least target that works.
bool names_least_target(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                        const MemoryBudget& budget);

}  // namespace strata::train

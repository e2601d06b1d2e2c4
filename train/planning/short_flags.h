// Writes the settings of a step as flags that fit into a line.
#pragma once

#include <string>
#include <vector>

#include "train/planning/planned_options.h"

namespace strata::train {

/// The changes as flags, in a line: actions alone are pages.
std::string short_flags(std::vector<PlannedOption> changes);

/// The settings of a step in the same way.
std::string short_flags(const plan::PlannedStep& step, const ResolvedConfig& config,
                        const MemoryBudget& budget);

/// The settings of a step as all flags that must be typed for it, that of a drive's folder
/// included.
std::string flags_to_type(const plan::PlannedStep& step, const ResolvedConfig& config,
                          const MemoryBudget& budget);

}  // namespace strata::train

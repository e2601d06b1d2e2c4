// Recipes of the optimizer's state that change results, where --allow-lossy lets the planner
// choose.
#pragma once

#include <string>

#include "train/planning/planned_options.h"

namespace strata::train {

/// Plans as plan_options does, and again with each recipe that `request.options.target.lossy`
/// names. One of these is taken if nothing fits without it or if it is better by 2 % or more: its
/// steps are as much faster, or with strategies that ask for little memory, it needs as much less.
/// Settings that fit as they are stay. Equal arguments give equal answers. Throws as plan_options.
PlannedRun plan_allowed(const ProgramRequest& request, const ResolvedConfig& config,
                        const MemoryBudget& budget);

}  // namespace strata::train

// Searches for settings and tells how far that is.
#pragma once

#include "train/planning/lossy_choices.h"
#include "train/run/planning_beat.h"

namespace strata::train {

/// Plans as plan_allowed does; tells `hear` of progress and of the end, and the request's own beat
/// as before.
PlannedRun plan_with_progress(ProgramRequest programs, const ResolvedConfig& config,
                              const MemoryBudget& budget, PlanningBeat::Hear hear);

}  // namespace strata::train

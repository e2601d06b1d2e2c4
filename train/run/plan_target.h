// Plans a request for the target of --target-memory, for a machine that need not be here.
#pragma once

#include "train/planning/planned_options.h"
#include "train/run/planning_site.h"

namespace strata::train {

/// The memory that the target leaves for the arenas of the machine of `request`. A host that is
/// only described keeps a twentieth of its memory for other processes, unless --host-memory says
/// how much of it may be taken. Throws InvalidArgument for a target that the machine cannot give.
MemoryBudget target_budget(const RunRequest& request, const PlanningSite& site);

}  // namespace strata::train

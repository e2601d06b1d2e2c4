// Finds what is faster than settings that fit as they are.
#pragma once

#include <optional>

#include "train/planning/planned_options.h"

namespace strata::train {

/// True if what would be fastest without a limit fits, too, so that no memory is what it lacks.
bool unlimited_fits(const plan::PlannerAnswer& answer, const MemoryBudget& budget);

/// Returns the fastest step, if it is faster than settings that fit as they are, which stay, by
/// what a run could show, and fits, too. Its limit of host memory is what it needs.
std::optional<plan::PlannedStep> faster_than_asked(const PlannedRun& planned,
                                                   const MemoryBudget& budget);

}  // namespace strata::train

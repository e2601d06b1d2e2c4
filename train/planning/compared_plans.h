// Lists the plans that were compared for a target of memory.
#pragma once

#include <string>
#include <vector>

#include "train/planning/planned_options.h"

namespace strata::train {

/// Lists what was compiled, each set of flags once, the fastest first. Flags that were compiled
/// more than once, with other limits or more thoroughly, come as they last fitted; those that were
/// chosen, which come first of equally fast ones, with the step that was chosen.
struct Compared {
  plan::Attempt attempt;
  bool is_chosen = false;
};
std::vector<Compared> compared(const PlannedRun& planned, const ResolvedConfig& config,
                               const MemoryBudget& budget);

/// A table of these: seconds per step, those guessed before, settings.
std::string describe_attempts(const PlannedRun& planned, const ResolvedConfig& config,
                              const MemoryBudget& budget);

}  // namespace strata::train

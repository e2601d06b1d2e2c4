// Measured times of instructions for a run's machine: read from what earlier runs kept, and
// measured before the first step.
#pragma once

#include <string>

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, before Programs are planned: gives the machine of all ranks the times that rank 0
/// finds kept for its processor, device, threads, ranks, transport and program, and says so. Notes
/// a file that cannot be used, and one of another build or of other threads or ranks, which is not
/// used. Does nothing with --calibrate off or again.
void read_profile(RunParts& run);

/// Collective: returns what rank 0 foresees of a step of its Programs, seconds.
double foresee_together(const RunParts& run, const compile::StepPrograms& programs);

/// Collective, after the engine is made and before weights are loaded: measures the kinds of
/// instructions that are not known yet, where the run is long enough or --calibrate asks for it,
/// gives all ranks what rank 0 measured, and keeps it. Says how long that took.
void calibrate(RunParts& run);

/// Returns the folder of profiles: $XDG_CACHE_HOME/strata/profiles or ~/.cache/strata/profiles;
/// empty: there is none.
std::string profile_folder();

}  // namespace strata::train

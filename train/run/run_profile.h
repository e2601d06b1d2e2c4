// Measured times of instructions for a run's machine: read from what earlier runs kept, measured
// before the first step, and for later runs in the first steps.
#pragma once

#include <string>
#include <vector>

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

/// Before the engine is made: where this run measures and its CPU is the device, adds rank 0's
/// observer of a few steps, which reads the clock twice for each instruction of these. A device
/// would have to do without recordings for it.
void observe_first_steps(RunParts& run, std::vector<runtime::Observer*>& observers,
                         double foreseen_seconds);

/// When the engine is idle after the last step: keeps what that observer saw for later runs, and
/// says what they would foresee. Changes nothing of this run.
void keep_observed(RunParts& run);

/// Returns the folder of profiles: $XDG_CACHE_HOME/strata/profiles or ~/.cache/strata/profiles;
/// empty: there is none.
std::string profile_folder();

}  // namespace strata::train

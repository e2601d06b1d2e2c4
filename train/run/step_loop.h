// The steps of a run, and what happens between them: evaluations, checkpoints, the stop that all
// ranks agree on.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: from position.steps_done to the last step or the stop, be it for a signal or for
/// steps that are not finite; drained, and every save that began is committed.
void run_steps(RunParts& run);

}  // namespace strata::train

// The steps of a run, and what happens between them: evaluations, checkpoints, the stop that all
// ranks agree on.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: from position.steps_done to the last step or the stop, drained, every save that
/// began is committed. Throws DataError, or Error, naming the step, where gradients leave no way
/// on.
void run_steps(RunParts& run);

}  // namespace strata::train

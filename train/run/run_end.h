// The end of a run: its last checkpoint, the files that were asked for, goodbye to the others.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, drained. Nobody leaves before all have written.
void finish(RunParts& run);

}  // namespace strata::train

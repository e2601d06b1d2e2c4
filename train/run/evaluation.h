// The loss on held-out data, which may fail without any harm to training.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, drained; nothing without held-out data. What cannot be read on a rank is a late
/// failure of the run: all ranks hear of it, and there is no loss of this step.
void evaluate(RunParts& run);

}  // namespace strata::train

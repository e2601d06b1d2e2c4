// Computes the loss on held-out data; a failure does not harm training.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, drained; does nothing without held-out data. If any rank cannot read its data, this
/// step has no held-out loss, and rank 0 records a late failure.
void evaluate(RunParts& run);

}  // namespace strata::train

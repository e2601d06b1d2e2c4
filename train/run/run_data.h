// Opens what a run reads before it plans: the data, and the files that go along with the weights.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: opens the run's tokens, showing progress while one rank makes them. On rank 0 reads
/// the files beside the weights, so that no later save can fail because of them.
void open_data(RunParts& run);

}  // namespace strata::train

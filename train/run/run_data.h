// What a run reads before its plan: the data, and the files that go along with the weights.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: the tokens of the run, on the screen while one rank makes them, and on rank 0 the
/// files beside the weights, which are read now so that no save fails for them later.
void open_data(RunParts& run);

}  // namespace strata::train

// Begins a run: from a checkpoint, which may change its options, or from new or stored weights.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: finds the checkpoint to go on from, digests the data, and changes the options as the
/// checkpoint requires. Throws if the run cannot go on from there.
void find_beginning(RunParts& run);

/// True if nothing is left to do, so that a loop that restarts with "--resume auto" can end.
bool is_done(const RunParts& run);
/// Collective: loads the checkpoint's state, stored weights or new weights, and says which.
void load(RunParts& run);

}  // namespace strata::train

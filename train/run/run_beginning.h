// With what a run begins: where it goes on from and what that asks of its options, or new weights.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: finds the checkpoint to go on from, digests the data, takes over what the checkpoint
/// asks of the options. Throws where the run cannot go on from there.
void find_beginning(RunParts& run);

/// A loop that starts the run with "--resume auto" until it succeeds needs an end.
bool is_done(const RunParts& run);
/// Collective: the checkpoint's state, stored weights or new ones into the engine; says which.
void load(RunParts& run);

}  // namespace strata::train

// What the checkpoints of a run contain besides tensors, and saving while training stands still.
#pragma once

#include "train/run/checkpoint_saver.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// As the run stands: behind position.steps_done, settled.
SaveContents save_contents(const RunParts& run);

/// Collective, drained: nothing without an output folder. `must`: a failure ends the run.
void save(RunParts& run, bool must);

/// Rank 0 says on the screen and in the metrics what was committed, if anything was.
void report_saved(RunParts& run, const std::optional<SavedCheckpoint>& saved);

}  // namespace strata::train

// Makes the contents of a run's checkpoints besides tensors, and saves while training stands still.
#pragma once

#include "train/run/checkpoint_saver.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Returns what a checkpoint of the present state contains: after position.steps_done, settled.
SaveContents save_contents(const RunParts& run);

/// Collective, drained: saves while training stands still; does nothing without an output folder.
/// --on-save-error says whether a failure is a warning or ends the run.
void save(RunParts& run);
/// Saves in the same way after the last step, where a failure ends the run.
void save_last(RunParts& run);
/// Saves in the same way for a run that ends because of steps that are not finite. Returns false,
/// without committing anything, if values of its state are not finite either.
bool save_finite(RunParts& run);

/// Tells the listeners what was committed, if anything.
void report_saved(RunParts& run, const std::optional<Saved>& saved);

}  // namespace strata::train

// What the checkpoints of a run contain besides tensors, and saving while training stands still.
#pragma once

#include "train/run/checkpoint_saver.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// What a checkpoint says of the run as it stands: after position.steps_done, settled.
SaveContents save_contents(const RunParts& run);

/// Collective, drained: a checkpoint while training stands still; nothing without an output folder.
/// A failure is said, or ends the run, as --on-save-error says.
void save(RunParts& run);
/// The same after the last step, for which a failure ends the run.
void save_last(RunParts& run);
/// The same for a run that ends for steps that are not finite: false where the values of its state
/// are not, either, so that nothing is committed.
bool save_finite(RunParts& run);

/// Tells the listeners what was committed, if anything was.
void report_saved(RunParts& run, const std::optional<Saved>& saved);

}  // namespace strata::train

// Ends a run: its last checkpoint, everything else that was asked for, leaving the other ranks.
#pragma once

#include "core/error.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, drained, after the last step. No rank leaves before all have written. Returns the
/// exit code that says why the run ended. Throws Error, once everything is saved, if steps were not
/// finite or something besides training failed.
ExitCode finish(RunParts& run);

/// Collective, drained: writes the digests that --dump-state asks for.
void dump_state(RunParts& run);

/// Collective: ends a run that had nothing to do.
ExitCode leave_done(RunParts& run);

}  // namespace strata::train

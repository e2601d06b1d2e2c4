// The end of a run: its last checkpoint, then whatever else was asked for, goodbye to the others.
#pragma once

#include "core/error.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, drained, after the last step. Nobody leaves before all have written. The exit code
/// that says why the run ended; throws Error where it ended for steps that are not finite, or where
/// something failed beside training: once everything is saved.
ExitCode finish(RunParts& run);

/// Collective, drained: the digests that --dump-state asks for.
void dump_state(RunParts& run);

/// Collective: of a run that had nothing to do.
ExitCode leave_done(RunParts& run);

}  // namespace strata::train

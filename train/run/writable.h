// Whether what a run will write can be written: asked before training, not after hours of it.
#pragma once

#include "train/config/options.h"

namespace strata::train {

/// Creates the directories of output and report when they are missing. Throws IoError naming the
/// path when one of them, or the directory of the metrics, trace or state file, is missing or
/// cannot be written to. Any rank may call it, several at once.
void require_writable(const TrainOptions& options);

/// On one rank: tries to write to the metrics, trace, state and report files, and leaves them as
/// they are. Throws IoError naming file and flag.
void try_writing(const TrainOptions& options);

}  // namespace strata::train

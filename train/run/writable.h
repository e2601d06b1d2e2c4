// Whether what a run will write can be written: asked before training, not after hours of it.
#pragma once

#include "train/config/options.h"

namespace strata::train {

/// Creates the output directory and the folders of logs when they are missing. Throws IoError
/// naming the path when one of these, or the directory of the metrics, trace or state file, is
/// missing or cannot be written to. Any rank may call it, several at once.
void require_writable(const TrainOptions& options);

/// On one rank: tries to write to the metrics, trace and state files and the folders of logs, and
/// leaves them as they are. Throws IoError naming file and flag or key.
void try_writing(const TrainOptions& options);

}  // namespace strata::train

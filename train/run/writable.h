// Checks before training that what a run will write can be written.
#pragma once

#include "train/config/options.h"

namespace strata::train {

/// Creates the directories of output, report and logs if they are missing. Throws IoError naming
/// the path if one of them, or the directory of the metrics, trace, profile or state file, is
/// missing or not writable. Any rank may call it, several at once.
void require_writable(const TrainOptions& options);

/// Tries on one rank to write the metrics, trace, profile, state and report files and to the
/// folders of logs, and leaves them as they are. Throws IoError naming file and flag or key.
void try_writing(const TrainOptions& options);

}  // namespace strata::train

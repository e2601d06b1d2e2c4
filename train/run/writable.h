// Whether what a run will write can be written: asked before training, not after hours of it.
#pragma once

#include "train/config/options.h"

namespace strata::train {

/// Creates the output directory when it is missing. Throws DataError when a step directory that
/// the run would write exists already, IoError naming the path when the output directory, or the
/// directory of the metrics, trace or state file, is missing or cannot be written to. Any rank may
/// call it, several at once.
void require_writable(const TrainOptions& options);

}  // namespace strata::train

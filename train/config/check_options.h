// Checks options that a program sets itself. (resolve() checks those of a command line or file.)
#pragma once

#include "train/config/options.h"

namespace strata::train {

/// Throws InvalidArgument that names every field whose number is out of range or NaN, and also
/// batch sizes that do not fit `world` ranks, a schedule without an end, and a state recipe that
/// the optimizer does not have. `options` are resolved: sequence_length is set.
void check_options(const TrainOptions& options, int world);

}  // namespace strata::train

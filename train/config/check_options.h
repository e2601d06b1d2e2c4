// Options that come from a program of its own, not from a command line or a file, which resolve()
// reads: whether they can be those of a run.
#pragma once

#include <string>

#include "train/config/options.h"

namespace strata::train {

/// Names the optimizers that have the state_recipe of `options`: "AdamW or Adam"; "" when theirs
/// has it.
std::string missing_for_recipe(const TrainOptions& options);

/// Throws InvalidArgument that names every field with a number that is out of its range or NaN, and
/// sizes of batches that do not fit `world` ranks, a schedule without its end, a state recipe that
/// the optimizer has not. `options` are resolved: sequence_length is set.
void check_options(const TrainOptions& options, int world);

}  // namespace strata::train

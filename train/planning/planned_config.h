// Writes planned settings as the JSON file that train and DeepSpeed read.
#pragma once

#include <string>

#include "train/config/options.h"

namespace strata::train {

/// Returns a DeepSpeed JSON with the settings that a planner may make: batch, precision, ZeRO,
/// offload, and under "strata" what DeepSpeed has no key for. Everything else is left to flags.
/// `train --config` with it and the same other flags repeats the plan.
std::string planned_config(const TrainOptions& options);

}  // namespace strata::train

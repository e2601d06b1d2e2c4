// Writes planned settings as the JSON file that train and DeepSpeed read.
#pragma once

#include <string>

#include "train/config/resolve.h"

namespace strata::train {

/// Returns a DeepSpeed JSON with every setting of `config` that says what a step computes and where
/// its bytes lie, given or planned, and under "strata" those that DeepSpeed has no key for: a run
/// with this file alone has the same Programs. How long a run is, its data, schedule of learning
/// rates, evaluations, checkpoints and logs are left to flags.
std::string planned_config(const ResolvedConfig& config);

/// The given settings that planned_config leaves to flags although they change Programs, since they
/// need files: evaluation and checkpoints, as flags that one could type; "": none.
std::string flags_beside_config(const ResolvedConfig& config);

}  // namespace strata::train

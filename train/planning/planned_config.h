// Writes planned settings as the JSON file that train and DeepSpeed read.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "train/config/resolve.h"

namespace strata::train {

/// Returns a DeepSpeed JSON with every setting of `config` that says what a step computes, where
/// its bytes lie and how long the run is, given or planned, and under "strata" those that DeepSpeed
/// has no key for: a run with this file alone has the same Programs. Its model, data, evaluations,
/// checkpoints and schedules of transformers are left to flags (flags_beside.h).
std::string planned_config(const ResolvedConfig& config);

/// True if planned_config writes the option where it is given and has an effect.
bool is_written(const ResolvedConfig& config, std::string_view option);

/// The same as planned_config, in one line, with the options alone that `wants` and keys set.
std::string config_of(const ResolvedConfig& config,
                      const std::function<bool(std::string_view option)>& wants);

}  // namespace strata::train

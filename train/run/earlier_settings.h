// How a run trains: its checkpoints say it, and a run that goes on otherwise hears of it.
#pragma once

#include <optional>
#include <string>

#include "train/config/options.h"

namespace strata::train {

/// The manifest's fact.
inline constexpr const char* kSettingsFact = "settings";

/// Lists the settings of optimizer, schedule and clipping that differ from the defaults:
/// "optimizer.beta1=0.8;...".
std::string training_settings(const TrainOptions& options);

/// Names what the run of a checkpoint had otherwise than `options`; "" when nothing, or when the
/// checkpoint does not say (`fact`: none).
std::string note_on_settings(const std::optional<std::string>& fact, const TrainOptions& options);

}  // namespace strata::train

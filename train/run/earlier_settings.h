// Records in checkpoints how a run trains, and notes where a run that goes on differs.
#pragma once

#include <optional>
#include <string>

#include "train/config/options.h"

namespace strata::train {

/// The manifest's fact that holds these settings.
inline constexpr const char* kSettingsFact = "settings";

/// Lists the settings of optimizer, schedule and clipping that differ from their defaults:
/// "optimizer.beta1=0.8;...".
std::string training_settings(const TrainOptions& options);

/// Says which settings of a checkpoint's run differ from `options`; "" if none do, or the
/// checkpoint has no such fact.
std::string note_on_settings(const std::optional<std::string>& fact, const TrainOptions& options);

}  // namespace strata::train

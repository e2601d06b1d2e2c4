// Keeps a checkpoint's defaults. Older versions gave runs that went on from stored weights the
// defaults of new models. A checkpoint says which defaults its run had.
#pragma once

#include <string>

#include "train/checkpoint/trainer_state.h"
#include "train/config/resolve.h"

namespace strata::train {

/// The manifest's fact that says so, and its values; without the fact: those of new models.
inline constexpr const char* kDefaultsFact = "defaults";
inline constexpr const char* kStoredModelDefaults = "stored model";
inline constexpr const char* kNewModelDefaults = "new model";

/// Gives options that nobody has set the defaults that the run of a checkpoint had (`fact`: the
/// checkpoint's fact). Returns a note, or "".
std::string keep_earlier_defaults(const ResolvedConfig& config, const std::string& fact,
                                  const TrainerState& saved, TrainOptions& options);

}  // namespace strata::train

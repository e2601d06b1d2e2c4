// Runs that go on from stored weights once had the defaults of new models. A checkpoint says which
// ones its run had; a run that goes on from it keeps them.
#pragma once

#include <string>

#include "train/checkpoint/trainer_state.h"
#include "train/config/resolve.h"

namespace strata::train {

/// The manifest's fact that says so, and its values. Where it is missing: those of new models.
inline constexpr const char* kDefaultsFact = "defaults";
inline constexpr const char* kStoredModelDefaults = "stored model";
inline constexpr const char* kNewModelDefaults = "new model";

/// Gives options that nobody has said the defaults that the run of an earlier checkpoint (whose
/// fact is `fact`) had. Returns a note, or "".
std::string keep_earlier_defaults(const ResolvedConfig& config, const std::string& fact,
                                  const TrainerState& saved, TrainOptions& options);

}  // namespace strata::train

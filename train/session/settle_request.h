// Makes of a command line the request that says what a rank is to train.
#pragma once

#include <span>

#include "core/rank_context.h"
#include "train/config/command_line.h"
#include "train/models/model_family.h"
#include "train/run/training_run.h"

namespace strata::train {

/// Reads the files that the command line names (--config, --hardware, the model's configuration)
/// and settles every option for the ranks of `context`, or for those that are assumed if nothing is
/// trained. `own`: families that config.json may name besides those of this repository; they must
/// outlive the request. Notes and warnings about the settings are in `config.notes` and
/// `config.warnings`. Throws Error.
RunRequest settle_request(const ParsedCommandLine& command_line, const RankContext& context,
                          std::span<const ModelFamily> own = {});

/// Number of ranks to resolve settings for: the run's, or an assumed one if nothing is trained.
int ranks_of(const ParsedCommandLine& command_line, const RunRequest& request);

}  // namespace strata::train

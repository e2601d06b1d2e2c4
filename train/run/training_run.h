// One rank's whole run, from resolved options to the last file.
#pragma once

#include <optional>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/status_page.h"
#include "machine/machine.h"
#include "train/config/resolve.h"
#include "train/models/model_family.h"
#include "train/run/console.h"

namespace strata::train {

struct RunRequest {
  RankContext context;
  ResolvedConfig config;
  ModelConfig model;
  std::span<const ModelFamily> own = {};          ///< families besides those of this repository
  std::optional<machine::Machine> hardware = {};  ///< to plan for, where nothing is trained
};

/// Builds Programs, loads or initializes weights, trains, evaluates, saves.
/// SIGTERM or SIGUSR1 to any rank: all finish the same step, save, and return try_again; otherwise
/// done. Throws Error; the status page says where the rank is.
ExitCode run_training(const RunRequest& request, StatusPage& status, Console& console);

/// Threads per rank: what the options say, else this host's cores shared by its ranks.
int threads_per_rank(const TrainOptions& options, const RankContext& context);

}  // namespace strata::train

// What one rank is to train, and how its run begins.
#pragma once

#include <optional>
#include <span>

#include "core/error.h"
#include "core/rank_context.h"
#include "machine/machine.h"
#include "train/config/resolve.h"
#include "train/models/model_family.h"

namespace strata::train {

struct RunRequest {
  RankContext context;
  ResolvedConfig config;
  ModelConfig model;
  std::span<const ModelFamily> own = {};          ///< families besides those of this repository
  std::optional<machine::Machine> hardware = {};  ///< to plan for, where nothing is trained
};

struct RunParts;

/// Collective: files, ranks, machine, Programs and engine, with weights that are loaded or
/// initialized. The exit code where all steps are done already; by then the ranks have parted.
std::optional<ExitCode> open_training(RunParts& run);

/// Threads per rank: what the options say, else this host's cores shared by its ranks.
int threads_per_rank(const TrainOptions& options, const RankContext& context);

}  // namespace strata::train

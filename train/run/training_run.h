// The request to train, as one rank has it, and the beginning of its run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/overwriting.h"
#include "core/rank_context.h"
#include "machine/machine.h"
#include "train/config/resolve.h"
#include "train/models/model_family.h"

namespace strata::train {

/// Returns the micro-batch (samples per rank) that the run's settings give in a world of so many
/// ranks; nullopt: they do not fit it.
using MicroBatchIn = std::function<std::optional<std::int64_t>(int world)>;

struct RunRequest {
  RankContext context;
  ResolvedConfig config;
  ModelConfig model;
  std::span<const ModelFamily> own = {};          ///< families besides those of this repository
  std::optional<machine::Machine> hardware = {};  ///< machine to plan for, if nothing is trained
  std::vector<NamedFile> read = {};  ///< files that settings came from, not to be written over
  bool owns_signals =
      false;  ///< of the process, where --save-on-signal false leaves them to others
  MicroBatchIn micro_batch_in = {};  ///< needed if context.is_elastic; may be empty otherwise
};

struct RunParts;

/// Collective: sets up files, ranks, machine, Programs and the engine, with loaded or initialized
/// weights. Returns an exit code if all steps are done already; then the ranks have parted.
std::optional<ExitCode> open_training(RunParts& run);

/// Threads per rank: from the options, else this host's cores divided by its ranks.
int threads_per_rank(const TrainOptions& options, const RankContext& context);

}  // namespace strata::train

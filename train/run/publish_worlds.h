// Tells the coordinator of a run whose hosts may come and go how many ranks it may have.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rank_context.h"
#include "train/run/training_run.h"

namespace strata::train {

/// Returns the numbers of ranks, ascending, that can share a step of `global_batch` samples: each
/// makes a whole number of micro-steps, with the settings of its own world.
std::vector<int> worlds_for(std::int64_t global_batch, const MicroBatchIn& micro_batch_in);

/// Puts numbers of ranks where the coordinator reads them (kWorldsKey). `may_grow`: these ranks
/// save and stop when they are sent SIGUSR1. Call it on rank 0.
void publish_worlds(const RankContext& context, const std::vector<int>& worlds, bool may_grow);

/// Waits for some seconds until rank 0 has done so: the end of this rank would end that one, too.
void await_worlds(const RankContext& context);

}  // namespace strata::train

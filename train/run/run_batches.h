// Makes the engine's batches from tokens: which samples belong to a step or an evaluation.
#pragma once

#include <cstdint>

#include "train/data/batch_loader.h"
#include "train/engine/engine.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Makes the training data's loader. Throws DataError naming a source shorter than one sample.
BatchLoader training_loader(const RunParts& run);
/// Makes the held-out data's loader, for a run that has such data. Throws as training_loader does.
BatchLoader held_out_loader(const RunParts& run);

/// Fills batches from a loader; borrows both. `first_sample`: the one that step 0 would begin with.
FillBatch make_filler(const RunParts& run, const BatchLoader& batches,
                      std::int64_t samples_per_step, std::int64_t first_sample = 0);

}  // namespace strata::train

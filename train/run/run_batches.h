// From tokens to the engine's batches: which samples a step and an evaluation of this run consist
// of.
#pragma once

#include <cstdint>

#include "train/data/batch_loader.h"
#include "train/engine/engine.h"
#include "train/run/run_parts.h"

namespace strata::train {

/// Both throw DataError, naming the source, where it is shorter than one sample.
BatchLoader training_loader(const RunParts& run);
/// Makes the loader of a run that has held-out data.
BatchLoader held_out_loader(const RunParts& run);

/// Borrows both. `first_sample`: what step 0 would begin with.
FillBatch make_filler(const RunParts& run, const BatchLoader& batches,
                      std::int64_t samples_per_step, std::int64_t first_sample = 0);

}  // namespace strata::train

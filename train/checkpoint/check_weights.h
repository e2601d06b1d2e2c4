// Verifies weights against their checkpoint's manifest before they are used as a model.
#pragma once

#include <cstdint>
#include <string>

#include "core/beat.h"
#include "core/file_system.h"

namespace strata::train {

/// Reads this rank's blocks (rank, rank + ranks, ...) of the model's files in `directory` and
/// compares them with its manifest; the optimizer's files may be missing. Does nothing without a
/// manifest of Strata. Beats after each block. Throws DataError that names file, block and bytes,
/// and IoError.
void check_weights(FileSystem& files, const std::string& directory, std::int64_t rank,
                   std::int64_t ranks, const Beat& beat = {});

}  // namespace strata::train

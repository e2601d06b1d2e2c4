// Weights that a checkpoint's manifest describes, looked at where they are about to be used as a
// model.
#pragma once

#include <cstdint>
#include <string>

#include "core/file_system.h"

namespace strata::train {

/// Reads this rank's blocks (rank, rank + ranks, ...) of the model's files of `directory` and
/// compares them with its manifest; the optimizer's files need not be there. Nothing happens where
/// there is no manifest of Strata: other programs' directories have none. Throws DataError that
/// names file, block and bytes, and IoError.
void check_weights(FileSystem& files, const std::string& directory, std::int64_t rank,
                   std::int64_t ranks);

}  // namespace strata::train

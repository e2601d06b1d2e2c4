// Computes digests of a checkpoint's state, as `train --dump-state` prints them for a run.
#pragma once

#include <string>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// Returns the lines of describe_state (train/engine/state_digest.h) that the run which saved the
/// folder would have printed. Each tensor's place in flat space, on which a digest depends
/// (docs/formats/digest.md), and the order of lines follow from config.json. Without
/// trainer_state.json there are no scalars. Throws DataError if the tensors do not belong to
/// config.json.
std::string describe_stored_state(const TensorFolder& folder, int threads);

}  // namespace strata::train

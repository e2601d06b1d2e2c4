// Digests of the state that a checkpoint holds, as `train --dump-state` prints those of a run.
#pragma once

#include <string>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// The lines of describe_state (train/engine/state_digest.h): what the run that saved the folder
/// would have said then. Where each tensor lies in flat space, which a digest depends on
/// (docs/formats/digest.md), and the order of lines follow from config.json. A folder without
/// trainer_state.json has no scalars. Throws DataError when the tensors are not those of
/// config.json.
std::string describe_stored_state(const TensorFolder& folder, int threads);

}  // namespace strata::train

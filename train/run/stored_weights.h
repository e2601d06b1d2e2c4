// Loads weights from a model directory into an engine, and reports what does not fit.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/engine/engine.h"
#include "train/models/model_config.h"

namespace strata::train {

/// Collective: fills this rank's shards from the directory `model`. Throws DataError as
/// load_weights does, and if config.json ties the head to the embedding but the file holds another
/// head: only the user knows which of the two is meant. Returns notes that name tensors from which
/// no parameter was loaded.
std::vector<std::string> load_stored_weights(Engine& engine, const std::string& model,
                                             const ModelConfig& config,
                                             const comm::Communicator& communicator);

}  // namespace strata::train

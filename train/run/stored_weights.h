// Weights from a model directory into an engine, and what does not fit between the two.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/engine/engine.h"
#include "train/models/model_config.h"

namespace strata::train {

/// Collective: fills this rank's shards from the directory `model`. Throws DataError as
/// load_weights does, and where config.json ties the head to the embedding but the file holds
/// another head: which of the two is meant only the user knows. Notes name tensors that no
/// parameter is loaded from.
std::vector<std::string> load_stored_weights(Engine& engine, const std::string& model,
                                             const ModelConfig& config,
                                             const comm::Communicator& communicator);

}  // namespace strata::train

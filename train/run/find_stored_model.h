// Reads from the folder of --model what the defaults of a run that goes on from its weights need.
#pragma once

#include <string>

#include "train/config/stored_model.h"

namespace strata::train {

/// `requested`: the value of --model; `directory`: the folder it means (resolve_model_directory).
/// The type is that of config.json ("dtype" or "torch_dtype"), else that of the largest tensor.
/// Throws DataError for damaged files.
StoredModel find_stored_model(const std::string& requested, const std::string& directory);

}  // namespace strata::train

// What people give as --model that is no model directory, and what to give instead.
#pragma once

#include <string>

namespace strata::train {

/// Throws ConfigError for files of other formats (.gguf, .safetensors, pickles, indexes), for
/// directories of other programs, and for names on the Hugging Face hub, saying how to get the
/// directory that is needed. Anything else passes.
void refuse_unusable_model(const std::string& model);

}  // namespace strata::train

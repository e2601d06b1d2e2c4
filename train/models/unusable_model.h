// What people give as --model that is no model directory, and what to give instead.
#pragma once

#include <string>

namespace strata::train {

/// Throws ConfigError for files of other formats (GGUF, safetensors, pickles, indexes), by name or
/// content, and for directories of other programs, saying how to get the directory that is needed.
/// Anything else passes.
void refuse_unusable_model(const std::string& model);

/// For what is neither here nor a preset: throws ConfigError with the line that downloads it where
/// it is named like a model of the Hugging Face hub, with or without its owner.
void refuse_hub_name(const std::string& model);

}  // namespace strata::train

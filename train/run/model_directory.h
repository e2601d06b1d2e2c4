// Finds what `--model` means: a Hugging Face directory, or the `latest` in an output folder.
#pragma once

#include <string>

namespace strata::train {

/// Returns `model` itself, or MODEL/latest if that is an output folder.
std::string resolve_model_directory(const std::string& model);

/// Throws DataError if `model` is a directory without weights, so that nobody trains from random
/// weights by mistake. A preset or a config.json has none by intent.
void require_weights(const std::string& model);

/// The text of the config.json that `model` means.
std::string config_text(const std::string& model);

}  // namespace strata::train

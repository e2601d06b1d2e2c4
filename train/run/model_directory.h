// What `--model` may name: a Hugging Face directory, or an output folder, whose `latest` is meant.
#pragma once

#include <string>

namespace strata::train {

/// `model` itself, or MODEL/latest when that is an output folder.
std::string resolve_model_directory(const std::string& model);

/// Throws DataError when `model` is a directory without weights: nobody should train from random
/// ones by mistake. A preset or a config.json has none by intent.
void require_weights(const std::string& model);

/// Text of the config.json that `model` means.
std::string config_text(const std::string& model);

}  // namespace strata::train

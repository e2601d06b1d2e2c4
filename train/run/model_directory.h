// Names inside an output folder: OUTPUT/step-00001000 is a Hugging Face directory, OUTPUT/latest
// points to the newest one.
#pragma once

#include <map>
#include <string>

namespace strata::train {

/// Replaces OUTPUT/latest in one step, for good.
void point_latest(const std::string& output, std::int64_t step);

/// The tokenizer's files of a model directory by name, if it has any.
std::map<std::string, std::string> tokenizer_files(const std::string& model);

/// `model` itself, or MODEL/latest when that is an output folder.
std::string resolve_model_directory(const std::string& model);

/// Throws DataError when `model` is a directory without weights: nobody should train from random
/// ones by mistake. A preset or a config.json has none by intent.
void require_weights(const std::string& model);

/// Text of the config.json that `model` means.
std::string config_text(const std::string& model);

}  // namespace strata::train

// Ready model shapes: Hugging Face config.json contents in configs/models, found beside the
// program.
#pragma once

#include <string>
#include <vector>

namespace strata::train {

/// The folder `configs` of this installation, looked for relative to the running program (build
/// tree, then share/strata). No environment variable is read. Throws HostError listing the folders
/// that were tried.
std::string configs_directory();

/// Names of the files in configs/models, without ".json", sorted.
std::vector<std::string> model_preset_names();

/// The config.json that `model` means: a file, a directory that holds config.json, or a preset's
/// name. Throws ConfigError naming what was looked for, with the nearest preset or, where the name
/// is that of a published model, how to download it.
std::string find_model_config(const std::string& model);

}  // namespace strata::train

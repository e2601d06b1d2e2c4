// Ready model shapes: Hugging Face config.json files in configs/models, found relative to the
// program.
#pragma once

#include <string>
#include <vector>

namespace strata::train {

/// The folder `configs` of this installation, found from the running program (build tree, then
/// share/strata), not from the environment. Throws HostError listing the folders that were tried.
std::string configs_directory();

/// Names of the files in configs/models, without ".json", sorted.
std::vector<std::string> model_preset_names();

/// The path of the config.json that `model` means: a file, a directory that holds config.json, or a
/// preset's name. Throws ConfigError naming what was looked for, with the nearest preset or, if the
/// name is a published model's, how to download it.
std::string find_model_config(const std::string& model);

}  // namespace strata::train

// Finds the files of a model directory that are not weights. A trained model needs them, too, so
// that other programs can use it as they used the original.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

struct BesideWeights {
  std::map<std::string, std::string> files;  ///< texts by name, which may begin with a folder
  std::vector<std::string> notes;            ///< names of files left out, and why
};

/// Reads the files of `model` (a directory, a config.json or a preset): tokenizer, chat template,
/// generation settings, README, licence and all other files, and those of the folder of named chat
/// templates. Beside a config.json reads only the tokenizer's files, since that may lie anywhere.
/// Leaves out config.json, which is written anew, weights and optimizers of any format, a
/// checkpoint's own files, and what Git and downloads left. The files of `tokenizer` (a directory
/// or tokenizer.json; "": the model's) replace the model's.
BesideWeights read_beside_weights(const std::string& model, const std::string& tokenizer);

/// True if a file of this name in a model directory is one of those that the model is read from, or
/// that its checkpoints take along: config.json, safetensors, a tokenizer's files and the like.
bool is_model_file(std::string_view name);

}  // namespace strata::train

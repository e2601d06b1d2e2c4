// The files of a model directory that are not weights: what a trained model must have, too, so that
// other programs use it as they used the one it was made of.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace strata::train {

struct BesideWeights {
  std::map<std::string, std::string> files;  ///< text by name, which may have a folder before it
  std::vector<std::string> notes;            ///< what stays behind, and why
};

/// Lists of `model` (a directory, a config.json or a preset): tokenizer, chat template, generation
/// settings, README, licence and whatever else lies there, and of its folders that of named chat
/// templates; beside a config.json the tokenizer's files alone, since that may lie anywhere. Left
/// out: config.json, which is written anew, weights and optimizers of any format, a checkpoint's
/// own files, and what Git and downloads left. `tokenizer` (a directory or tokenizer.json; "": the
/// model's): its files take the place of the model's.
BesideWeights read_beside_weights(const std::string& model, const std::string& tokenizer);

}  // namespace strata::train

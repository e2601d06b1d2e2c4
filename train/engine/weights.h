// Weights into and out of an engine's shards: random, from a Hugging Face directory, to one.
#pragma once

#include <map>
#include <string>

#include "train/engine/engine.h"
#include "train/files/model_files.h"

namespace strata::train {

/// Fills parameters (and masters, whole or as remainders) of this rank from the initializers, in
/// the memory of a device by its own kernel. An element's value depends on `seed`, its tensor's
/// name and its index alone, whatever the world, the stage and the device.
void initialize_weights(Engine& engine, std::int64_t seed);

/// Reads every range this rank holds; never the whole model. Names with or without the
/// `transformer.` prefix are found. Throws DataError for missing tensors and other shapes.
void load_weights(Engine& engine, const ModelFiles& files);

/// Writes DIRECTORY as a Hugging Face model directory: weights in unit order under their names, in
/// the compute type, and `files`, texts by name, config.json among them. Every rank writes its own
/// ranges; the directory appears whole or not at all. Collective.
void save_weights(Engine& engine, const std::string& directory,
                  const std::map<std::string, std::string>& files, const std::string& run_id);

}  // namespace strata::train

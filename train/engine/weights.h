// Weights into an engine's shards: new ones, or those of a Hugging Face directory.
#pragma once

#include <string>

#include "train/engine/engine.h"
#include "train/files/model_files.h"
#include "train/models/model_family.h"

namespace strata::train {

/// Fills parameters (and masters, whole or as remainders) of this rank from the initializers, in
/// the memory of a device by its own kernel. An element's value depends on `seed`, its tensor's
/// name and its index alone, whatever the world, the stage and the device. The engine is drained,
/// as for load_weights.
void initialize_weights(Engine& engine, std::int64_t seed);

/// Name under which the files have the tensor: with or without the prefix of `family`.
std::string stored_name(const ModelFiles& files, const ModelFamily& family,
                        const std::string& name);

/// Reads every range this rank holds; never the whole model. Names with or without the prefix of
/// `family` are found. Throws DataError for missing tensors and other shapes.
void load_weights(Engine& engine, const ModelFiles& files, const ModelFamily& family);
/// Loads a parameter, master or remainder alone, as it is listed or cut from that.
void load_entry(Engine& engine, const ModelFiles& files, const ModelFamily& family,
                const step::StateEntry& entry);

}  // namespace strata::train

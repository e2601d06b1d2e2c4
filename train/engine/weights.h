// Fills an engine's shards with new weights, or with those of a Hugging Face directory.
#pragma once

#include <string>

#include "train/engine/engine.h"
#include "train/files/model_files.h"
#include "train/models/model_family.h"

namespace strata::train {

/// Fills this rank's parameters (and masters, whole or as remainders) from their initializers; in
/// the memory of a device by the device's own kernel. An element's value depends only on `seed`,
/// its tensor's name and its index, whatever the world, the stage and the device. The engine is
/// drained, as for load_weights.
void initialize_weights(Engine& engine, std::int64_t seed);

/// The tensor's name in the files, with or without the prefix of `family`.
std::string stored_name(const ModelFiles& files, const ModelFamily& family,
                        const std::string& name);

/// Reads the ranges that this rank holds, never the whole model. Finds names with or without the
/// prefix of `family`. Throws DataError for missing tensors and other shapes.
void load_weights(Engine& engine, const ModelFiles& files, const ModelFamily& family);
/// Loads one parameter, master or remainder: an entry of step::list_state, or a part of one.
void load_entry(Engine& engine, const ModelFiles& files, const ModelFamily& family,
                const step::StateEntry& entry);

}  // namespace strata::train

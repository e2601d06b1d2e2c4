// Loads a checkpoint into an engine, whatever the world, stage and tiers that saved it.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/engine.h"

namespace strata::train {

/// Fills this rank's parameters and optimizer state, reading only the ranges it needs and verifying
/// every byte; the caller sets the step's scalars. Call it between steps, drained. State of the
/// same kind and type is copied bit for bit. Weights may be stored otherwise: masters and
/// parameters follow from a stored master, a parameter with its remainder, or a parameter; moments
/// may change between fp32 and bf16 (nearest even). Returns a sentence for each such conversion,
/// the same on every rank. Throws ConfigError naming folder, tensor and unit for optimizer state
/// that this run keeps otherwise or not at all; DataError naming folder and tensor for anything
/// else, such as weights without a place in this run; IoError; InvalidArgument while a step is
/// under way.
std::vector<std::string> load_checkpoint(Engine& engine, const CheckpointReader& reader);
/// Loads only these entries of step::list_state, or parts of them.
std::vector<std::string> load_checkpoint(Engine& engine, const CheckpointReader& reader,
                                         const std::vector<step::StateEntry>& entries);

}  // namespace strata::train

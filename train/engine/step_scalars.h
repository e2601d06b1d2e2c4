// Converts the step's scalars (kernels::StepState) to and from those of trainer_state.json.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/trainer_state.h"
#include "train/engine/engine.h"

namespace strata::train {

/// Reads the scalars, between steps, settled; the same on every rank.
std::vector<TrainerState::Scalar> read_scalars(const Engine& engine);

/// Writes the scalars, between steps, drained. Throws DataError naming `file` and the scalar that
/// is missing, unknown or of another type.
void write_scalars(Engine& engine, const std::vector<TrainerState::Scalar>& scalars,
                   const std::string& file);

}  // namespace strata::train

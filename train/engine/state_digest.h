// A digest per persistent tensor, the same for any world, stage and tier (design 2.18).
#pragma once

#include <string>

#include "train/engine/engine.h"
#include "train/files/digest.h"

namespace strata::train {

/// The step's scalars as they stand between two steps. Throws InvalidArgument when the engine has
/// no training Program.
kernels::StepState step_state(const Engine& engine);

/// Sum over the pieces of an entry, read from the engine between steps. Of a window of columns each
/// row must begin and end where cells do, as range_digest says.
Digest entry_digest(const Engine& engine, const step::StateEntry& entry);

/// Text of `--dump-state`: one line "NAME KIND DTYPE DIGEST" per tensor and kind in unit order,
/// then "NAME scalar DTYPE VALUE" per field of the step's state, in its order. Collective; the same
/// text on every rank.
std::string describe_state(Engine& engine);

}  // namespace strata::train

// A digest per persistent tensor, the same for any world, stage and tier (design 2.18).
#pragma once

#include <string>

#include "train/engine/engine.h"
#include "train/files/digest.h"

namespace strata::train {

/// Returns the step's scalars between two steps. Throws InvalidArgument without a training Program.
kernels::StepState step_state(const Engine& engine);

/// Sums the digests of an entry's pieces, read from the engine between steps. In a window of
/// columns each row must begin and end at cell borders (range_digest).
Digest entry_digest(const Engine& engine, const step::StateEntry& entry);

/// Returns the text of `--dump-state`: one line "NAME KIND DTYPE DIGEST" per tensor and kind in
/// unit order, then "NAME scalar DTYPE VALUE" per field of the step's state. Collective; the same
/// text on every rank.
std::string describe_state(Engine& engine);

}  // namespace strata::train

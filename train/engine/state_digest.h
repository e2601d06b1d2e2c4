// A digest per persistent tensor, the same for any world, stage and tier (design 2.18).
#pragma once

#include <string>

#include "train/engine/engine.h"

namespace strata::train {

/// Text of `--dump-state`: one line "NAME KIND DTYPE DIGEST" per tensor and kind in unit order,
/// then the step's scalars. Collective; the same text on every rank.
std::string describe_state(Engine& engine);

}  // namespace strata::train

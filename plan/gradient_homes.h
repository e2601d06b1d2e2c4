// Moves gradients to the disk where host memory is too little for them.
#pragma once

#include <optional>

#include "runtime/graph/plan.h"

namespace strata::plan {

/// Moves gradients from host memory to the disk for units that have other state on the disk;
/// nullopt if there are none.
std::optional<runtime::Plan> with_gradients_on_disk(runtime::Plan plan);

}  // namespace strata::plan

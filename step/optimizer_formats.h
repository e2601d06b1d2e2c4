// The formats in which optimizers keep their state. docs/formats/plan.md has the same table.
#pragma once

#include <vector>

#include "runtime/graph/plan.h"

namespace strata::step {

/// Returns all optimizer recipes that exist.
std::vector<runtime::OptimizerRecipe> optimizer_formats();

}  // namespace strata::step

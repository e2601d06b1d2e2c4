// The format of optimizer state that options ask for, and the optimizers that have it.
#pragma once

#include <string>

#include "runtime/graph/plan.h"
#include "train/config/options.h"

namespace strata::train {

/// Returns the recipe of the optimizer and the state_recipe of `options`. It exists if
/// missing_for_recipe is empty.
runtime::OptimizerRecipe optimizer_recipe(const TrainOptions& options);

/// Names the optimizers that have the state_recipe of `options`: "AdamW or Adam"; "": theirs does.
std::string missing_for_recipe(const TrainOptions& options);

}  // namespace strata::train

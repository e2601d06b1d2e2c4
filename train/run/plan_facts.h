// What a checkpoint says of the Plan that its run obeyed, whatever its options were.
#pragma once

#include <string>

#include "runtime/graph/plan.h"
#include "train/config/options.h"

namespace strata::train {

/// The largest stage that a unit has: what `options` ask for, unless the Plan is of --plan.
std::string zero_stage_text(const runtime::Plan& plan, const TrainOptions& options);

/// What is kept of the parameters that are trained, as --state-recipe names it: "8bit", or "mixed:
/// 4 of 6 units fp32-master, 2 8bit".
std::string state_recipe_text(const runtime::Plan& plan, const TrainOptions& options);

/// "4 of 6 units, frozen: embedding.matrices, layer.0.vectors"; "" where all are trained.
std::string trained_text(const runtime::Plan& plan);

}  // namespace strata::train

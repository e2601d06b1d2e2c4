// Describes for checkpoints the Plan that a run obeyed, whatever its options were.
#pragma once

#include <string>

#include "runtime/graph/plan.h"
#include "train/config/options.h"

namespace strata::train {

/// The largest stage of a unit: the one in `options`, unless the Plan comes from --plan.
std::string zero_stage_text(const runtime::Plan& plan, const TrainOptions& options);

/// The recipes of the trained parameters as --state-recipe names them: "8bit", or "mixed: 4 of 6
/// units fp32-master, 2 8bit".
std::string state_recipe_text(const runtime::Plan& plan, const TrainOptions& options);

/// Text such as "4 of 6 units, frozen: embedding.matrices, layer.0.vectors"; "" if all are trained.
std::string trained_text(const runtime::Plan& plan);

}  // namespace strata::train

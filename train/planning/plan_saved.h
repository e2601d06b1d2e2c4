// From options to what becomes of saved activations.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"
#include "train/config/options.h"

namespace strata::train {

/// Lists actions on all that the blocks of a forward Graph save: of layers checkpointed by
/// segments, of norms and activation functions that are made again, of values that leave the
/// device; all else is kept.
std::vector<runtime::BlockActions> plan_saved(const TrainOptions& options, runtime::Graph graph);

}  // namespace strata::train

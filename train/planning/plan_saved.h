// From options to what becomes of saved activations.
#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/plan.h"
#include "train/config/options.h"

namespace strata::train {

/// Actions on what the blocks of `forward`, a forward Graph, save, and of its layers: activation
/// checkpointing by segments, norms and activation functions made again, values that leave the
/// device.
std::vector<runtime::BlockActions> plan_saved(const TrainOptions& options, runtime::Graph forward);

}  // namespace strata::train

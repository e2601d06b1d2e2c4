// The pass that ends a step's sums: norm, agreed word, control.
#pragma once

#include "step/step.h"

namespace strata::step {

/// End of a step: the norm of each gradient after its reduction, agreed word, control, metrics.
/// `word` is the agreed word with the losses of all micro-steps in it.
void control_pass(runtime::Graph& graph, const StepSettings& settings, runtime::ValueId word);

}  // namespace strata::step

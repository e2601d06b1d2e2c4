#pragma once

#include "step/step.h"

namespace strata::step {

/// Ends a step: adds the norm of each gradient after its reduction, the agreed word, control and
/// metrics. `word` is the agreed word with the losses of all micro-steps in it.
void control_pass(runtime::Graph& graph, const StepSettings& settings, runtime::ValueId word);

}  // namespace strata::step

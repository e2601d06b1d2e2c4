// The passes that update parameters: at the end of a step, in the next one, or in the backward
// pass. step/step.cpp calls one of them; each handles every unit by its plan.
#pragma once

#include "step/step.h"

namespace strata::step {

/// Updates optimizer tiles at the end of the step (after control_pass), and brings parameters back
/// to where they live.
void update_pass(runtime::Graph& graph, const StepSettings& settings);

/// Does the same for the step before: each unit a block before the first use of its parameters. The
/// state does not change if that step was skipped or drained, or if there was none.
void late_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// Does the same after each unit's own gradient, inside the backward pass (Updates::gradient):
/// after its last reduction and the last reader of its parameters. Runs after control_pass and
/// gather_pass: from then on only gathers read sharded parameters.
void early_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// True if updates of any unit round at random.
bool rounds_at_random(const runtime::Plan& plan);

/// Returns the block "update", and adds it if it is not there yet.
int update_block(runtime::Graph& graph);

}  // namespace strata::step

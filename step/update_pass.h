// The passes that update parameters: at the end of a step, in the next one, or in the backward
// pass. step/step.cpp calls one of them; each handles every unit by its plan.
#pragma once

#include "step/step.h"

namespace strata::step {

/// Optimizer tiles, parameters back to where they live, at the end of the step (after
/// control_pass).
void update_pass(runtime::Graph& graph, const StepSettings& settings);

/// The same for the step before, each a block before the first use of its parameters. Does nothing
/// to the state when that step was skipped, drained, or never was.
void late_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// The same after each unit's own gradient, inside the backward pass (Updates::gradient): after
/// the last reduction and the last reader of the parameters. Runs after control_pass and
/// gather_pass, from which on sharded parameters are read by their gathers alone.
void early_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// Whether updates of any unit round at random.
bool rounds_at_random(const runtime::Plan& plan);

/// Returns the block "update", added when it is not there yet.
int update_block(runtime::Graph& graph);

}  // namespace strata::step

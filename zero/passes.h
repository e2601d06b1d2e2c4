// The three passes behind zero/step.h. Each takes the whole Graph and handles every unit by its
// plan.
#pragma once

#include "zero/step.h"

namespace strata::zero {

/// Units whose parameters are sharded: every use, per block and direction, reads a gathered value;
/// nearby uses share one gather as the Plan's reuse distance and live limit allow.
void gather_pass(runtime::Graph& graph, const StepSettings& settings);

/// Gradients: accumulate over micro-steps, reduce where and when the Plan says. Leaves the
/// accumulator's version for update_pass in Graph::unit_gradients.
void reduction_pass(runtime::Graph& graph, const StepSettings& settings, Position position);

/// End of a step: norm, agreed word, control, optimizer tiles, parameters back to where they live.
/// `word` is the agreed word with the losses of all micro-steps in it.
void update_pass(runtime::Graph& graph, const StepSettings& settings, runtime::ValueId word);

/// A persistent root by name, added to the graph when it is not there yet: the version that it
/// holds when the Program starts.
runtime::ValueId persistent_value(runtime::Graph& graph, const std::string& name,
                                  const kernels::TensorType& type, runtime::Role role,
                                  runtime::Tier tier = runtime::Tier::device);

/// View of elements [begin, end) of a flat value.
runtime::ValueId flat_view(runtime::Graph& graph, runtime::ValueId of, std::int64_t begin,
                           std::int64_t end, std::string name);

}  // namespace strata::zero

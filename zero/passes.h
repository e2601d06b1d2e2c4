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
void reduction_pass(runtime::Graph& graph, const StepSettings& settings, const Position& position);

/// How many sizes of partial sums have storage of their own (runtime::partial_sum_name), the
/// smaller ones first. The largest waits in the accumulator where nothing else does: log2 of a
/// rank's leaves or one less.
int partial_sum_levels(const runtime::Plan& plan);

/// End of a step: the norm of each gradient behind its reduction, agreed word, control, metrics.
/// `word` is the agreed word with the losses of all micro-steps in it.
void control_pass(runtime::Graph& graph, const StepSettings& settings, runtime::ValueId word);

/// Optimizer tiles, parameters back to where they live, at the end of the step (behind
/// control_pass).
void update_pass(runtime::Graph& graph, const StepSettings& settings);

/// The same for the step before, each a block before the first use of its parameters. Does nothing
/// to the state when that step was skipped, drained, or never was.
void late_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// The same behind each unit's own gradient, inside the backward pass (Updates::gradient): behind
/// the last reduction and the last reader of the parameters. Runs behind control_pass and
/// gather_pass, after which sharded parameters are read by their gathers alone.
void early_update_pass(runtime::Graph& graph, const StepSettings& settings);

/// The block "update", added when it is not there yet.
int update_block(runtime::Graph& graph);

/// A persistent root by name, added to the graph when it is not there yet: the version that it
/// holds when the Program starts.
runtime::ValueId persistent_value(runtime::Graph& graph, const std::string& name,
                                  const kernels::TensorType& type, runtime::Role role,
                                  runtime::Tier tier = runtime::Tier::device);

/// A persistent root by name, whatever its version, added when it is not there yet.
runtime::ValueId persistent_root(runtime::Graph& graph, const std::string& name,
                                 const kernels::TensorType& type, runtime::Role role,
                                 runtime::Tier tier = runtime::Tier::device);

/// The persistent root of this rank's part of a unit whose parameters are sharded.
runtime::ValueId parameter_shard(runtime::Graph& graph, std::size_t unit,
                                 const StepSettings& settings);

/// Seed and step, an input of every training Graph.
runtime::ValueId random_input(const runtime::Graph& graph);

/// View of elements [begin, end) of a flat value.
runtime::ValueId flat_view(runtime::Graph& graph, runtime::ValueId of, std::int64_t begin,
                           std::int64_t end, std::string name);

}  // namespace strata::zero

// Turns one micro-step's differentiated Graph into the Graph of one rank: adds gathers and ordered
// reductions (zero/), accumulation, control and sharded updates as ordinary nodes. Each pass reads
// the Plan per unit; none knows a stage.
#pragma once

#include "kernels/ops/step_control.h"
#include "runtime/program/persistent_layout.h"
#include "zero/micro_step.h"
#include "zero/rank_plan.h"

namespace strata::step {

/// The Plan, and numbers that do not affect memory.
struct StepSettings : zero::RankPlan {
  kernels::Attributes optimizer;  ///< numbers of every update; weight_decay is added per segment
  kernels::Attributes control;    ///< attributes of step_control: clipping, loss scale, schedule
};

/// Adds the persistent storage of a training run on this rank: parameters, masters, moments,
/// accumulators, step state. It is the same for every zero::MicroStepKind.
void declare_state(runtime::PersistentLayout& layout,
                   const std::vector<runtime::ParameterUnit>& units, const StepSettings& settings);

/// Lowers a training micro-step, or several side by side (runtime/passes/layer_major.h,
/// zero::MicroStepKind::only). `graph` is differentiated (and recomputed); `losses` are its fp64
/// scalars, one per micro-step.
runtime::Graph lower_micro_step(runtime::Graph graph, const std::vector<runtime::ValueId>& losses,
                                const StepSettings& settings, const zero::MicroStepKind& kind);

/// Makes the Graph of what Updates::next_step leaves after the last step: the updates, and a
/// control word that says that none is pending. `graph` gives units and inputs; nodes are ignored.
runtime::Graph lower_drain(runtime::Graph graph, const StepSettings& settings);

/// Lowers a forward-only Graph: adds gathers, and the loss summed over ranks into the agreed word.
/// `loss` may be kNoValue (generation).
runtime::Graph lower_evaluation(runtime::Graph graph, runtime::ValueId loss,
                                const StepSettings& settings);

}  // namespace strata::step

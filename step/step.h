// From one micro-step's differentiated Graph to the Graph of one rank: gathers and ordered
// reductions (zero/), accumulation, control and sharded updates as ordinary nodes.
// Each pass reads the Plan per unit; none knows a stage.
#pragma once

#include "kernels/ops/step_control.h"
#include "runtime/program/persistent_layout.h"
#include "zero/micro_step.h"
#include "zero/rank_plan.h"

namespace strata::step {

/// The Plan, and numbers that decide nothing about memory.
struct StepSettings : zero::RankPlan {
  kernels::Attributes optimizer;  ///< of every update; weight_decay is added per segment
  kernels::Attributes control;    ///< of step_control: clipping, loss scale, schedule
};

/// Adds the persistent storage of a training run on this rank: parameters, masters, moments,
/// accumulators, step state; the same for every zero::MicroStepKind.
void declare_state(runtime::PersistentLayout& layout,
                   const std::vector<runtime::ParameterUnit>& units, const StepSettings& settings);

/// Training micro-step, or several side by side (runtime/passes/layer_major.h,
/// zero::MicroStepKind::only). `graph` is differentiated (and recomputed); `losses` its fp64
/// scalars, one per micro-step.
runtime::Graph lower_micro_step(runtime::Graph graph, const std::vector<runtime::ValueId>& losses,
                                const StepSettings& settings, const zero::MicroStepKind& kind);

/// What Updates::next_step leaves to do after the last step: the updates alone, and a control word
/// that says so. `graph` gives units and inputs; its nodes do not matter.
runtime::Graph lower_drain(runtime::Graph graph, const StepSettings& settings);

/// Forward-only Graph: gathers, and the loss summed over ranks into the agreed word.
/// `loss` may be kNoValue (generation).
runtime::Graph lower_evaluation(runtime::Graph graph, runtime::ValueId loss,
                                const StepSettings& settings);

}  // namespace strata::step

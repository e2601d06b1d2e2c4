// The pass that adds gradients up: over micro-steps, virtual ranks and ranks.
#pragma once

#include "zero/micro_step.h"
#include "zero/rank_plan.h"

namespace strata::zero {

/// Gradients: accumulate over micro-steps, reduce where and when the Plan says. Leaves the
/// accumulator's version for step/update_pass in Graph::unit_gradients.
void reduction_pass(runtime::Graph& graph, const RankPlan& of, const MicroStepKind& kind);

/// How many sizes of partial sums have storage of their own (runtime::partial_sum_name), the
/// smaller ones first. The largest waits in the accumulator where nothing else does: log2 of a
/// rank's leaves or one less.
int partial_sum_levels(const runtime::Plan& plan);

}  // namespace strata::zero

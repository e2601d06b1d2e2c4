// The pass that adds gradients up: over micro-steps, virtual ranks and ranks.
#pragma once

#include "zero/micro_step.h"
#include "zero/rank_plan.h"

namespace strata::zero {

/// Accumulates gradients over micro-steps, and reduces them where and when the Plan says. Leaves
/// the accumulator's version for step/update_pass in Graph::unit_gradients.
void reduction_pass(runtime::Graph& graph, const RankPlan& of, const MicroStepKind& kind);

/// Returns how many sizes of partial sums, the smaller ones first, have storage of their own
/// (runtime::partial_sum_name): log2 of a rank's leaves, or one less if the largest can wait in the
/// accumulator because nothing else uses that.
int partial_sum_levels(const runtime::Plan& plan);

}  // namespace strata::zero

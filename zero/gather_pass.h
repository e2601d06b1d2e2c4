// The pass that brings sharded parameters together where they are used.
#pragma once

#include "zero/rank_plan.h"

namespace strata::zero {

/// Units whose parameters are sharded: every use, per block and direction, reads a gathered value;
/// nearby uses share one gather as the Plan's reuse distance and live limit allow.
void gather_pass(runtime::Graph& graph, const RankPlan& of);

}  // namespace strata::zero

// The pass that brings parameters together where they are used, in the type that operations read.
#pragma once

#include "zero/rank_plan.h"

namespace strata::zero {

/// Units whose parameters are sharded: every use, per block and direction, reads a gathered value;
/// nearby uses share one gather as the Plan's reuse distance and live limit allow. Units that are
/// kept in another type: every use reads a converted value, rounded as a master copy is (ties of
/// bf16 away from zero); of sharded ones each rank's part is converted before it is gathered.
void gather_pass(runtime::Graph& graph, const RankPlan& of);

}  // namespace strata::zero

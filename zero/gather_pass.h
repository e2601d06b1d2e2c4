// The pass that gathers parameters for their uses, in the type that operations read.
#pragma once

#include "zero/rank_plan.h"

namespace strata::zero {

/// Makes every use of a sharded unit, per block and direction, read a gathered value; nearby uses
/// share a gather as the Plan's reuse distance and live limit allow. Every use of a unit that is
/// kept in another type reads a converted value, rounded like a master copy (bf16 ties away from
/// zero); of a sharded unit each rank converts its part before the gather.
void gather_pass(runtime::Graph& graph, const RankPlan& of);

}  // namespace strata::zero

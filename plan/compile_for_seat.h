// Compiles for one rank the Plan that was found for another.
#pragma once

#include "compile/compile.h"

namespace strata::plan {

/// Returns the Programs of `plan` for the rank at `where`. Its memory limits were found for the
/// rank with the largest shards (widest_seat.h); tiles and windows of other shards end elsewhere,
/// and may need a little more. A limit that is too small for any schedule of another rank is raised
/// there by twice what lacks, up to that of `asked`, the Plan that was asked for.
compile::Compiled compile_for_seat(const compile::TrainingModel& model, runtime::Plan plan,
                                   const runtime::Plan& asked, const machine::Machine& machine,
                                   const comm::MeshSeat& where, compile::Effort effort);

}  // namespace strata::plan

// Tells how much of each arena holds something still needed, at each instruction of a Program.
#pragma once

#include <vector>

#include "runtime/graph/plan.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// Holds bytes of each tier, by instruction.
using LiveBytes = std::vector<TierBytes>;

/// Counts persistent storage, transient roots from their first to their last instruction in the
/// list, and the workspace of an instruction.
LiveBytes live_bytes(const Program& program);

}  // namespace strata::runtime

// How much of each arena holds something that is still needed, at each instruction of a Program.
#pragma once

#include <vector>

#include "runtime/graph/plan.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// Bytes of each tier, by instruction.
using LiveBytes = std::vector<TierBytes>;

/// Counts persistent storage, roots from their first to their last instruction of the list, and
/// what an instruction has as its workspace.
LiveBytes live_bytes(const Program& program);

}  // namespace strata::runtime

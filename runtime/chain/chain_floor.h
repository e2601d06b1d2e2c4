// The smallest budget under which some choice fits, whatever its time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/chain/chain.h"
#include "runtime/chain/chain_steps.h"

namespace strata::runtime {

struct ChainFloor {
  std::int64_t budget_bytes = 0;
  ChainChoice choice;  ///< one that fits there
};

/// Exact. Empty if no budget of device memory is enough: host memory is too small for every choice,
/// or an engine is missing. Does not read the Chain's own budget of device memory.
std::optional<ChainFloor> chain_floor(const Chain& chain);

/// The most that blocks before block i may keep, so that blocks from i on still fit: a row per
/// block with an entry for each move of block i - 1 (one for i = 0), whose bytes come back beside
/// block i; negative if they never do. A last row for the end. Host memory is left out.
std::vector<std::vector<std::int64_t>> kept_limits(const ChainSteps& steps);

}  // namespace strata::runtime

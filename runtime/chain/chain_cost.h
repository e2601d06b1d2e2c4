// The cost of one choice: the only definition of it (equations: chain.h).
#pragma once

#include <cstdint>

#include "runtime/chain/chain.h"

namespace strata::runtime {

struct ChainCost {
  bool fits = false;
  std::int64_t extra_ns = 0;      ///< recomputation and waits; without meaning if it does not fit
  std::int64_t recompute_ns = 0;  ///< part of extra_ns
  std::int64_t peak_bytes = 0;    ///< largest bytes of a position, with backlog
  /// Position of peak_bytes: i is the forward pass of block i, 2L - 1 - i its backward pass.
  int peak_position = 0;
  /// Smallest budget under which this choice fits, if passes may wait until values on their way out
  /// have left. If an option needs an engine that is missing: the largest number, and all other
  /// fields are 0.
  std::int64_t floor_bytes = 0;
  std::int64_t host_peak_bytes = 0;  ///< in pinned host memory
  bool operator==(const ChainCost&) const = default;
};

/// `chain` is checked (check_chain); the choice has an option of each block.
ChainCost chain_cost(const Chain& chain, const ChainChoice& choice);

}  // namespace strata::runtime

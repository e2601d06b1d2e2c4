// The fastest choice of a chain under its budget (the problem and its equations: chain.h).
//
// Labels are ways through the first blocks. A label has what the rest can still feel of it: kept
// bytes m, ticks t so far, the ticks u = t + (backlog in ticks) that the link is busy at least,
// bytes coming back beside the next block, and until when they come (ready). In these terms
// waiting for excess is t = max(t, u - (room - m)), and draining is u = max(t, u - drained). So a
// label dominates another if it has at most as much of m, m + coming, t, u, t + ready, u + ready
// and, where host memory binds, of host bytes without and with the disk's window: whatever
// follows, it is never slower. Labels that cannot end faster than the best choice known are left
// out (chain_bound.h), as are those after which nothing fits (kept_limits of chain_floor.h).
//
// Nothing is assumed of equal blocks: they share options, while their positions differ.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/chain/chain.h"
#include "runtime/chain/chain_cost.h"

namespace strata::runtime {

struct ChainSolution {
  /// Empty if nothing fits; then only floor_bytes has a meaning.
  ChainChoice choice;
  ChainCost cost;
  std::int64_t greedy_ns = 0;       ///< of the greedy choice; -1: it found none
  std::int64_t lower_bound_ns = 0;  ///< no choice has less extra time
  bool proven = false;              ///< no choice that fits is faster
  /// The smallest budget under which some choice fits; -1: host memory or engines forbid all.
  std::int64_t floor_bytes = -1;
  std::int64_t effort = 0;  ///< spent

  [[nodiscard]] bool fits() const { return !choice.empty(); }
};

struct ChainEffort {
  /// Labels made, and labels compared with another. So equal problems have equal answers.
  std::int64_t most = 60'000'000;
};

/// Throws InvalidArgument as check_chain does. `known` are choices to improve on, such as the one
/// for a smaller budget: the answer is never slower than one of them that fits, also where it is
/// not proven.
ChainSolution solve_chain(const Chain& chain, const ChainEffort& effort = {},
                          const std::vector<ChainChoice>& known = {});

}  // namespace strata::runtime

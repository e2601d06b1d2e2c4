// Checks that a Program stays within the Plan's budget of each tier (design 2.6), and if it does
// not, says what fills the tier.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/plan.h"
#include "runtime/program/memory_timeline.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// One tier of a Program at the instruction at which most of it is in use.
struct TierPeak {
  std::int64_t needed_bytes = 0;  ///< the whole arena
  int instruction = -1;           ///< -1: the Program touches nothing transient there
  std::vector<Holder> holders;    ///< largest first
  std::int64_t other_bytes = 0;   ///< persistent storage of other Programs, gaps of the layout
};
TierPeak peak_of(const Program& program, Tier tier);

/// Returns a message per tier whose arena is larger than its budget: the Program, the tier, bytes
/// needed and allowed, the peak instruction and the largest holders there. Empty if all fit.
std::vector<std::string> over_budget(const Program& program, const TierBytes& budget_bytes);

}  // namespace strata::runtime

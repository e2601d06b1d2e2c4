// Options of which none is worse than another in everything.
#pragma once

#include <vector>

#include "runtime/chain/chain.h"

namespace strata::runtime {

/// Indices, ascending, of the options that no other one dominates: by needing at most as much in
/// every field. Of equal options the first remains. A longer recomputation never shortens a pass by
/// what its block waits less, so some best choice has none of the others.
std::vector<int> undominated_options(const std::vector<ChainOption>& options);

}  // namespace strata::runtime

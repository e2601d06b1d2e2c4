// A first choice, by bytes that are freed for the time that they cost.
#pragma once

#include <optional>

#include "runtime/chain/chain.h"

namespace strata::runtime {

/// Begins with the fastest option of each block. While the choice does not fit, gives one block the
/// option that frees most bytes at the fullest position per ns of the whole choice; of blocks of
/// one class with one option the first is tried, whose bytes wait longest. Empty if that ends
/// without a choice that fits.
std::optional<ChainChoice> greedy_choice(const Chain& chain);

}  // namespace strata::runtime

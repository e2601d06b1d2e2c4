// The ranks compare what they are about to do before they do it.
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"

namespace strata::comm {

/// Collective over all ranks: `lines` (say, one per collective of a Program) must be equal
/// everywhere. If not, every rank throws the same InternalError, naming the first line that
/// differs, both texts and both ranks, instead of hanging later. Cheap when they are equal: one
/// small exchange. Needs no arena of the caller.
void require_equal_sequences(Communicator& communicator, std::span<const std::string> lines);

}  // namespace strata::comm

// A check that all ranks are about to run the same collectives.
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"

namespace strata::comm {

/// Collective over all ranks. If `lines` (for instance one per collective of a Program) differ
/// between ranks, every rank throws the same InternalError instead of hanging later; it names the
/// first line that differs, both texts and both ranks. Costs one small exchange when they are
/// equal. Needs no arena of the caller.
void require_equal_sequences(Communicator& communicator, std::span<const std::string> lines);

}  // namespace strata::comm

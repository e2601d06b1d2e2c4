// Runs one collective with patterned operands and checks every byte of the result.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "comm/testing/test_arena.h"

namespace strata::comm {

/// Takes operands from `arena` (which it resets), fills them with patterns of (rank, seed), runs
/// and checks with GoogleTest expectations. Gathers and sums of fp32 are done in place when
/// `in_place`. Sends and receives carry one value per (sender, seed). `communicator` may be of any
/// backend.
void run_checked(Communicator& communicator, TestArena& arena, const Collective& collective,
                 std::uint64_t seed, bool in_place = false);

/// Even, uneven, with empty pieces, everything on one rank, nothing at all; at most about 5,000
/// elements.
std::vector<Partition> interesting_partitions(int world);

}  // namespace strata::comm

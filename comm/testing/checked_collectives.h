// Runs one collective with patterned operands and checks every byte of the result.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "comm/testing/test_arena.h"

namespace strata::comm {

/// Takes operands from `arena` (which it resets), fills them with patterns of (rank, seed), runs
/// the collective and checks the result with GoogleTest expectations. With `in_place`, gathers and
/// sums of fp32 are done in place. Sends and receives carry one value per (sender, seed). Works
/// with any backend.
void run_checked(Communicator& communicator, TestArena& arena, const Collective& collective,
                 std::uint64_t seed, bool in_place = false);

/// Returns partitions that are even, uneven, with empty pieces, all on one rank, or empty; of at
/// most about 5,000 elements.
std::vector<Partition> interesting_partitions(int world);

}  // namespace strata::comm

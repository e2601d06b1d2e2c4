// The key that only ranks of one run know, by which they know one another.
#pragma once

#include <chrono>
#include <string>

#include "core/rank_context.h"

namespace strata::comm {

/// Returns the value of the store's key "hosts/secret". Rank 0 puts a random one if nobody has: who
/// can read the run's rendezvous belongs to the run. Throws PeerError when rank 0 does not come
/// within `limit`.
std::string run_secret(KeyValueStore& store, int rank, std::chrono::milliseconds limit);

}  // namespace strata::comm

// How much memory this host can still give, and the refusal when a plan needs more.
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

/// Bytes available to new allocations: MemAvailable, or what the memory cgroup leaves when that is
/// less. 0 when unknown.
std::int64_t available_host_bytes();

/// Highest resident size of this process so far, bytes.
std::int64_t peak_resident_bytes();

/// Throws OutOfMemory with the amounts when `ranks` arenas of `arena_bytes` do not fit into
/// `free_bytes` (0: unknown, anything goes). What to change stands in memory_advice.h.
void require_host_memory(std::int64_t arena_bytes, int ranks,
                         std::int64_t free_bytes = available_host_bytes());

}  // namespace strata::train

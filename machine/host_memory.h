// How much memory this host can still give, and how much this process has taken.
#pragma once

#include <cstdint>

namespace strata::machine {

/// Bytes available to new allocations: MemAvailable, or what the memory cgroup leaves when that is
/// less. 0 when unknown.
std::int64_t available_host_bytes();

/// Highest resident size of this process so far, bytes.
std::int64_t peak_resident_bytes();

}  // namespace strata::machine

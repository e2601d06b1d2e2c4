// The memory that this host can still give, and the memory that this process has taken:
// measurements of the moment. What the host has in all, and what it allows, is in the Machine
// (HostMemory).
#pragma once

#include <cstdint>

namespace strata::machine {

/// Bytes available to new allocations: MemAvailable, or what the memory cgroup leaves if that is
/// less; 0 when unknown.
std::int64_t available_host_bytes();

/// Highest resident size of this process so far, in bytes.
std::int64_t peak_resident_bytes();

}  // namespace strata::machine

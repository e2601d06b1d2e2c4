// The clocks for durations, heartbeats and leases. Wall clocks jump; these do not.
#pragma once

#include <cstdint>

namespace strata {

/// CLOCK_MONOTONIC in nanoseconds: the same for all processes of a host.
std::int64_t monotonic_ns();

/// CLOCK_BOOTTIME in nanoseconds: the same, but it goes on while the host sleeps, so that what was
/// to end meanwhile has ended.
std::int64_t boot_time_ns();

}  // namespace strata

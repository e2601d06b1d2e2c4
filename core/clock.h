// The one clock for durations and heartbeats. Wall clocks jump; this one does not.
#pragma once

#include <cstdint>

namespace strata {

/// CLOCK_MONOTONIC in nanoseconds: the same for all processes of a host.
std::int64_t monotonic_ns();

}  // namespace strata

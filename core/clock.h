// The clocks for durations, heartbeats and leases, which do not jump; and wall time for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace strata {

/// CLOCK_MONOTONIC in nanoseconds: the same for all processes of a host.
std::int64_t monotonic_ns();

/// The same clock at its last tick, at most some milliseconds ago: several times cheaper to read.
std::int64_t coarse_monotonic_ns();

/// CLOCK_BOOTTIME in nanoseconds: the same, but it goes on while the host sleeps, so that what was
/// to end meanwhile has ended.
std::int64_t boot_time_ns();

/// As in 2026-11-27T06:11:23Z; "" for times that no calendar has.
std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace strata

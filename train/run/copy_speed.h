// How fast this machine moves bytes: in host memory, and between host and device.
#pragma once

#include <cstdint>

#include "kernels/device.h"

namespace strata::train {

/// Bytes read plus bytes written per second while `threads` threads copy `bytes` each pass between
/// two arenas of that size, the best of a few passes. STREAM's way to count. Throws OutOfMemory.
double host_copy_rate(int threads, std::int64_t bytes);

/// Bytes per second through pinned memory.
struct LinkRates {
  double to_device = 0;
  double to_host = 0;
  double both_ways = 0;  ///< at once, both together
};

/// Takes `bytes` of the device and as much pinned host memory for a moment; the best of a few
/// passes. Throws OutOfMemory.
LinkRates measure_links(kernels::Device& device, std::int64_t bytes);

}  // namespace strata::train

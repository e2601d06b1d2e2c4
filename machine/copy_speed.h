// How fast this machine moves bytes: in host memory, and between host and device.
#pragma once

#include <cstdint>

#include "kernels/device/device.h"
#include "machine/machine.h"

namespace strata::machine {

/// Bytes read plus bytes written per second while `threads` threads copy `bytes` each pass between
/// two arenas of that size, the best of a few passes. STREAM's way to count. Throws
/// std::bad_alloc.
double host_copy_rate(int threads, std::int64_t bytes);

/// Takes `bytes` of the device and as much pinned host memory for a moment; the best of a few
/// passes. Throws OutOfMemory.
Link measure_links(kernels::Device& device, std::int64_t bytes);

}  // namespace strata::machine

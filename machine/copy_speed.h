// Measured copy speeds of this machine: within host memory, and between host and device.
#pragma once

#include <cstdint>

#include "kernels/device/device.h"
#include "machine/machine.h"

namespace strata::machine {

/// Returns bytes read plus bytes written per second (as STREAM counts) while `threads` threads copy
/// `bytes` per pass between two buffers; the best of a few passes. Throws std::bad_alloc.
double host_copy_rate(int threads, std::int64_t bytes);

/// Measures the link with `bytes` of device memory and as much pinned host memory; the best of a
/// few passes. Throws OutOfMemory.
Link measure_links(kernels::Device& device, std::int64_t bytes);

}  // namespace strata::machine

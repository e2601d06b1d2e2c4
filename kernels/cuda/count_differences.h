// Compares the bits of two buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/stream.h"

namespace strata::cuda {

/// Enqueues a kernel that adds to `*count`, in device memory, the number of 16-bit elements in
/// which `a` and `b` differ. Choosing algorithms uses it; it is not tuned for use in steps.
void count_differences(kernels::Stream& stream, const std::uint16_t* a, const std::uint16_t* b,
                       std::int64_t elements, std::int64_t* count);

}  // namespace strata::cuda

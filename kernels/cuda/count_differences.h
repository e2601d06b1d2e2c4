// Do two buffers hold the same bits?
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/stream.h"

namespace strata::cuda {

/// Enqueues: adds to `*count`, in device memory, at how many of the first `elements` 16-bit places
/// `a` and `b` differ. For comparing once, not for steps.
void count_differences(kernels::Stream& stream, const std::uint16_t* a, const std::uint16_t* b,
                       std::int64_t elements, std::int64_t* count);

}  // namespace strata::cuda

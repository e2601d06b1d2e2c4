// kernels/cpu/ordered_sum.h on a device, for what arrived over a wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "kernels/device/stream.h"

namespace strata::cuda {

/// Enqueues out[i] = scale * sum over r of contributions[r][i], i in [0, count), with the bits of
/// kernels::ordered_sum: added in fp32 in the binary tree over the next power of two, missing
/// leaves skipped. Contributions are of `wire_type` (fp32, bf16, fp16) already; 1 to
/// kernels::kMaxContributions of them. `out` may be exactly one fp32 contribution; other overlaps
/// are not allowed.
void ordered_sum(kernels::Stream& stream, std::span<const std::byte* const> contributions,
                 DType wire_type, std::int64_t count, float scale, float* out);

/// Enqueues the rounding that comes before: kernels::convert_to_wire. Nothing overlaps.
void convert_to_wire(kernels::Stream& stream, DType input_type, const std::byte* from,
                     DType wire_type, std::int64_t count, std::byte* to);

}  // namespace strata::cuda

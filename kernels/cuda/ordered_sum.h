// The ordered sum of kernels/cpu/ordered_sum.h on a device, of contributions from all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "kernels/device/stream.h"

namespace strata::cuda {

/// Enqueues out[i] = scale * sum over r of contributions[r][i], i in [0, count), with the bits of
/// kernels::ordered_sum: contributions are added in fp32 in a binary tree over the next power of
/// two of leaves, of which missing ones are skipped. There are 1 to kernels::kMaxContributions,
/// already of `wire_type` (fp32, bf16, fp16). `out` may be one of them if they are fp32; it must
/// not overlap otherwise.
void ordered_sum(kernels::Stream& stream, std::span<const std::byte* const> contributions,
                 DType wire_type, std::int64_t count, float scale, float* out);

/// Enqueues the rounding to the wire type (kernels::convert_to_wire). Ranges must not overlap.
void convert_to_wire(kernels::Stream& stream, DType input_type, const std::byte* from,
                     DType wire_type, std::int64_t count, std::byte* to);

}  // namespace strata::cuda

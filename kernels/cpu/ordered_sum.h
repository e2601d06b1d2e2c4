// Adds the ranks' contributions in one fixed order, so that the result depends on neither backend
// nor timing (comm/ builds reduce-scatter and all-reduce from it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace strata::kernels {

class ThreadPool;

inline constexpr int kMaxContributions = 64;

/// Computes out[i] = scale * sum over r of wire(contributions[r][i]), i in [0, count).
///
/// Each element is rounded once to `wire_type`, to nearest even, and added in fp32 in the binary
/// tree over the next power of two: (0+1)+(2+3), missing leaves skipped: (0+1)+2. Types fp32, bf16,
/// fp16. 1 to kMaxContributions contributions. `out` may be exactly one fp32 contribution; other
/// overlaps are not allowed. One pass over memory on `pool`, or on the calling thread when it is
/// nullptr.
void ordered_sum(ThreadPool* pool, std::span<const std::byte* const> contributions,
                 DType input_type, DType wire_type, std::int64_t count, float scale, float* out);

/// Does the rounding alone, for a wire that copies bytes: an ordered_sum whose input and wire type
/// are both `wire_type` then gives the same bits. `from` and `to` may not overlap unless types are
/// equal.
void convert_to_wire(ThreadPool* pool, DType input_type, const std::byte* from, DType wire_type,
                     std::int64_t count, std::byte* to);

}  // namespace strata::kernels

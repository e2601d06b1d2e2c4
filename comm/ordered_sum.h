// The ordered sum of collective.h on memory that this process can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace strata::kernels {
class ThreadPool;

void ordered_sum(std::span<const std::byte* const> contributions, DType input_type, DType wire_type,
                 std::int64_t count, float scale, float* out, ThreadPool* pool);
void convert_to_wire(const std::byte* input, DType input_type, DType wire_type, std::int64_t count,
                     std::byte* out, ThreadPool* pool);
}  // namespace strata::kernels

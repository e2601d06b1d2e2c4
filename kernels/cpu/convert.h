// Conversion of contiguous ranges on the CPU, for kernels and for wires.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace strata::kernels {

/// The rounding of fp32 to bf16: to nearest even, or half away from zero for masters. Every other
/// conversion rounds to nearest even.
enum class Rounding : std::uint8_t { nearest_even, master };

/// Converts `count` elements on the calling thread. Types are fp32, bf16 or fp16; ranges do not
/// overlap, except that equal types may share one range.
void convert_range(DType from_type, const std::byte* from, DType to_type, std::byte* to,
                   std::int64_t count, Rounding rounding = Rounding::nearest_even);

}  // namespace strata::kernels

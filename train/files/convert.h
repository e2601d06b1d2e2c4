// Converts between element types when weights are read and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace strata::train {

/// True if elements can be converted: fp32, bf16, fp16, fp64 to one another, any type to itself.
bool can_convert(DType source, DType target);

/// Converts `count` elements from `in` to `out` (no overlap, any alignment). Rounds each once, to
/// nearest even; values too large become infinities, NaN stays NaN.
void convert_elements(DType source, const std::byte* in, DType target, std::byte* out,
                      std::int64_t count);

}  // namespace strata::train

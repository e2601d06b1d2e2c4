// Conversion between element types while weights are read and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace strata::train {

/// fp32, bf16, fp16 and fp64 convert to one another; any type to itself.
bool can_convert(DType source, DType target);

/// `count` elements from `in` to `out` (no overlap, any alignment), each rounded once, to nearest
/// even; too large ones become infinities, NaN stays NaN.
void convert_elements(DType source, const std::byte* in, DType target, std::byte* out,
                      std::int64_t count);

}  // namespace strata::train

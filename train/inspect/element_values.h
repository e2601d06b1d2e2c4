// Converts elements of any type to numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace strata::train {

/// Converts `count` elements at `in` (any alignment) to fp64, exactly except integers beyond 2^53.
void to_doubles(DType dtype, const std::byte* in, double* out, std::int64_t count);

}  // namespace strata::train

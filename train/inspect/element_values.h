// Elements of any type as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace strata::train {

/// `count` elements at `in` (any alignment) as fp64: exact, but for integers beyond 2^53.
void to_doubles(DType dtype, const std::byte* in, double* out, std::int64_t count);

}  // namespace strata::train

// First values of parameters as host memory: what the kernel of kernels/ops/initialize.h writes.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"
#include "kernels/ops/initial_values.h"

namespace strata::kernels {

/// fp32 values as an output of `initialize` of this type.
void store_initial_values(std::span<const float> values, DType dtype, std::byte* to);

/// values[k] becomes element first + k before it is rounded to a type. On the calling thread.
void initial_values(const InitialValues& initializer, std::int64_t first, std::span<float> values);

}  // namespace strata::kernels

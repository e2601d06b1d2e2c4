// Makes initial values of parameters in host memory, with the bits of kernels/ops/initialize.h.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"
#include "kernels/ops/initial_values.h"

namespace strata::kernels {

/// Stores fp32 values as an output of `initialize` of this type.
void store_initial_values(std::span<const float> values, DType dtype, std::byte* to);

/// Sets values[k] to element first + k before it is rounded to a type. Runs on the calling thread.
void initial_values(const InitialValues& initializer, std::int64_t first, std::span<float> values);

}  // namespace strata::kernels

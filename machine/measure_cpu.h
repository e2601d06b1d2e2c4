// Measured peak rates of a CPU that plays the device.
#pragma once

#include "core/dtype.h"
#include "machine/machine.h"

namespace strata::machine {

/// Returns the FLOP/s of a product of 2048 x 2048 x 2048 on `threads` threads; the best of a few
/// passes (in all a quarter of a second on two cores). Throws std::bad_alloc.
double product_rate(int threads, DType type);

/// Replaces the assumed rates of a CPU's memory and of its products (fp32 and `type`) by rates
/// measured on as many threads as the machine has cores. Throws std::bad_alloc.
void measure_cpu(Machine& machine, DType type);

}  // namespace strata::machine

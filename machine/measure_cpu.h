// What the CPU that plays the device does at most.
#pragma once

#include "core/dtype.h"
#include "machine/machine.h"

namespace strata::machine {

/// FLOP/s of a product of 2048 x 2048 x 2048 on `threads` threads, the best of a few passes (a
/// quarter of a second on two cores). Throws std::bad_alloc.
double product_rate(int threads, DType type);

/// Replaces what is assumed of the rates of a CPU's products, of fp32 and of `type`, and of its
/// memory by what is measured on as many threads as it has. Throws std::bad_alloc.
void measure_cpu(Machine& machine, DType type);

}  // namespace strata::machine

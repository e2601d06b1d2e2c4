// Measured peak rates of a CPU that plays the device.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "machine/machine.h"

namespace strata::machine {

/// Returns the FLOP/s of a product of side x side x side on `threads` threads; the best of a few
/// passes (of 2048, in all a quarter of a second on two cores). Throws std::bad_alloc.
double product_rate(int threads, DType type, std::int64_t side = 2048);

/// Returns the bytes that all processes of this host together may take for measuring: a quarter of
/// what is available now.
std::int64_t memory_to_measure();

/// Replaces the assumed rates of a CPU's memory and of its products (fp32 and `type`) by rates
/// measured on as many threads as the machine has cores. Takes at most `most_bytes` at a time, and
/// at most 1 GiB. Returns how many bytes it copied at a time, which hide in caches if they are few;
/// 0: there is too little memory (less than about 4 MiB), and the rates stay. Throws
/// std::bad_alloc.
std::int64_t measure_cpu(Machine& machine, DType type, std::int64_t most_bytes);

}  // namespace strata::machine

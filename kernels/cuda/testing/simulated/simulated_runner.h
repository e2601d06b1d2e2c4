// Runs simulated CUDA kernels in tests.
#pragma once

#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/testing/test_runner.h"

namespace strata::cuda {

/// Returns a runner of operations, which runs the CUDA kernel in the simulation. Its workspace is
/// aligned to 64 bytes, exactly as large as asked for, and filled with 0xFF (NaN).
kernels::Runner simulated_runner(ThreadOrder order);

}  // namespace strata::cuda

// The CUDA backend for tests, simulated.
#pragma once

#include "kernels/cuda/host/simulated_stream.h"
#include "kernels/testing/test_runner.h"

namespace strata::cuda {

/// Runs the operation's CUDA kernel. Workspace is aligned as arenas align, exactly as large as
/// asked for, and holds NaN.
kernels::Runner simulated_runner(ThreadOrder order);

}  // namespace strata::cuda

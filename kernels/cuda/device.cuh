// All that kernels use of CUDA. A kernel is a struct `Body` with
//     static constexpr int kThreads = ...;                    // threads per block
//     static STRATA_DEVICE void run(const Arguments& a);      // runs one thread
// which launch<Body>(stream, {grid, shared_bytes}, arguments) starts. A body is plain C++, and uses
// CUDA only through the functions of this header in namespace strata::cuda.
//
// Two compilers read the same bodies. nvcc makes device code (device_nvcc.cuh). A C++ compiler
// makes a simulation (testing/simulated/): blocks run one after another, a block's threads are
// fibers that switch where they synchronize, shared memory starts as NaN, asynchronous copies
// arrive only when waited for, and alignment, sizes and the convergence of warps are checked. So
// kernels are tested, under the sanitizers too, where there is no GPU.
#pragma once

#include "kernels/cuda/launch_shape.h"

#if defined(__CUDACC__)
#include "kernels/cuda/device_nvcc.cuh"
#else
#include STRATA_SIMULATION  // the build of the simulation says which: device_host.h
#endif

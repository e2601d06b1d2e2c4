// Functions that run on the host and in CUDA kernels: the same source, and the same bits where they
// are made of correctly rounded operations alone.
#pragma once

#include "core/check.h"

/// Before a function that is to be compiled for both sides. It may call functions that are marked
/// likewise, constexpr ones, and those of <cmath> that CUDA has.
#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

/// Before a loop whose counter must be a constant in each round, for both compilers.
#if defined(__CUDACC__)
#define STRATA_UNROLL _Pragma("unroll")
#else
#define STRATA_UNROLL _Pragma("GCC unroll 16")
#endif

/// STRATA_CHECK for such functions. In a kernel it stops the grid: the host meets an error of CUDA.
#if defined(__CUDA_ARCH__)
#define STRATA_CHECK_ANYWHERE(condition, ...) \
  do {                                        \
    if (!(condition)) __trap();               \
  } while (false)
#else
#define STRATA_CHECK_ANYWHERE(condition, ...) STRATA_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

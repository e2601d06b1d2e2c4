// Macros for functions that run on the host and in CUDA kernels: the same source, and the same bits
// if they use correctly rounded operations alone.
#pragma once

#include "core/check.h"

/// Marks a function that is compiled for both sides. It may call functions with the same mark,
/// constexpr ones, and those of <cmath> that CUDA has.
#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

/// Unrolls the loop that follows, so that its counter is a constant in each round.
#if defined(__CUDACC__)
#define STRATA_UNROLL _Pragma("unroll")
#else
#define STRATA_UNROLL _Pragma("GCC unroll 16")
#endif

/// Does STRATA_CHECK in such functions. In a kernel a failure gives the host a CUDA error.
#if defined(__CUDA_ARCH__)
#define STRATA_CHECK_ANYWHERE(condition, ...) \
  do {                                        \
    if (!(condition)) __trap();               \
  } while (false)
#else
#define STRATA_CHECK_ANYWHERE(condition, ...) STRATA_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

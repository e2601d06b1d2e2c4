// Elementary functions of activations in few instructions. A kernel on 16-bit elements that is to
// be bound by memory can afford about 24 instructions per element (H200: 4.8 TB/s, 4 bytes per
// element, 128 lanes per multiprocessor); exact exponentials and divisions would use them up.
#pragma once

#include "kernels/cuda/device.cuh"

namespace strata::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

#if !defined(__CUDA_ARCH__)
/// Flushes a subnormal result to zero, as the device's instructions that end in .ftz do.
inline float flush_subnormal(float x) { return std::fabs(x) < 0x1p-126f ? x * 0 : x; }
#endif

/// 2^x within 2 units in the last place; 0 below 2^-126.
STRATA_DEVICE float fast_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return flush_subnormal(std::exp2(x));
#endif
}

/// 1 / x within 1 unit in the last place; 0 above 2^126.
STRATA_DEVICE float fast_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return flush_subnormal(1 / x);
#endif
}

/// 1 / (1 + 2^x): the logistic function of -x ln 2. Its relative error grows with |x|, as that of
/// 2^x does through the rounding of x: 2^-23 + |x| 2^-25.
STRATA_DEVICE float logistic2(float x) { return fast_reciprocal(1 + fast_exp2(x)); }

/// logistic2(x) and 1 - logistic2(x), each with a small relative error.
struct LogisticPair {
  float value, complement;
};
STRATA_DEVICE LogisticPair logistic2_pair(float x) {
  const float power = fast_exp2(fminf(x, 126));  // finite
  const float value = fast_reciprocal(1 + power);
  return {value, power * value};
}

/// The normal distribution: P(X <= x), and e^(-x^2 / 2), which is computed on the way. The relative
/// error is below 7e-7 for x > -4, and below 4e-6 for smaller x (where P < 4e-5).
struct Normal {
  float cumulative, bell;
};
STRATA_DEVICE Normal normal(float x) {
  const float bell = fast_exp2(x * x * (-0.5f * kLog2E));
  // P(X <= -|x|) = bell * u * polynomial(u), u = 1 / (1 + 0.23 |x|). The coefficients are a minimax
  // fit (least squares, reweighted), with an error of 6e-8 up to |x| = 5.
  const float u = fast_reciprocal(fmaf(0.23f, fabsf(x), 1));
  float p = -0.072521105f;
  p = fmaf(p, u, 0.261358f);
  p = fmaf(p, u, -0.21786307f);
  p = fmaf(p, u, 0.23251009f);
  p = fmaf(p, u, 0.014386244f);
  p = fmaf(p, u, 0.09979442f);
  p = fmaf(p, u, 0.090560034f);
  p = fmaf(p, u, 0.09177543f);
  const float tail = bell * (u * p);
  return {x < 0 ? tail : 1 - tail, bell};
}

}  // namespace strata::cuda

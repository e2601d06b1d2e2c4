// Implements kernels/ops/gelu.h on CUDA. With tanh, 16-bit elements take 4 bytes and about 17
// instructions forward, 6 and 28 backward, so memory is the bound. The form with erf takes few
// more: x P(X <= x) needs one tail of the normal distribution, and not erf to full precision around
// 0.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

// (1 + tanh(u)) / 2 is computed as 1 / (1 + e^(-2u)), which is accurate also where tanh(u) is near
// -1. The factors include log2(e), since the exponential is 2^x.
constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
constexpr float kLinear = -kLog2E * kTwiceSqrt2OverPi;
constexpr float kCubic = kLinear * 0.044715f;

template <bool kTanh>
STRATA_DEVICE float gelu_of(float x) {
  if constexpr (kTanh)
    return x * logistic2(x * fmaf(x * x, kCubic, kLinear));
  else
    return x * normal(x).cumulative;
}

template <bool kTanh>
STRATA_DEVICE float gelu_slope(float x) {
  if constexpr (kTanh) {
    // x is bounded to keep powers finite: beyond +-10 the derivative is 0 or 1 to 35 digits.
    // Comparisons with NaN are false, so NaN stays NaN.
    const float v = x > 10 ? 10 : x < -10 ? -10 : x;
    const float square = v * v;
    const LogisticPair s = logistic2_pair(v * fmaf(square, kCubic, kLinear));
    const float steepness = fmaf(square, 3 * 0.044715f * kTwiceSqrt2OverPi, kTwiceSqrt2OverPi);
    return fmaf(v * steepness * s.complement, s.value, s.value);
  } else {
    const Normal n = normal(x);
    return fmaf(x, 0.3989422804014327f * n.bell, n.cumulative);
  }
}

template <typename T>
struct GeluArguments {
  RowShape shape;
  RowPointer<const T> x;
  RowPointer<T> y;
};

template <typename T, int N, bool kTanh>
struct Gelu {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 1);
  using Arguments = GeluArguments<T>;
  using Operands = Pack<T, N>;
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) { return read_pack<N>(a.x, at); }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    float x[N];
    to_floats(x, pack);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = gelu_of<kTanh>(x[i]);
    store_floats(a.y, at.row, at.col, x);
  }
};

template <typename T>
struct GeluBackwardArguments {
  RowShape shape;
  RowPointer<const T> dy, x;
  RowPointer<T> dx;
};

template <typename T, int N, bool kTanh>
struct GeluBackward {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = GeluBackwardArguments<T>;
  struct Operands {
    Pack<T, N> dy, x;
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    return {read_pack<N>(a.dy, at), read_pack<N>(a.x, at)};
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    float dy[N], x[N];
    to_floats(dy, pack.dy);
    to_floats(x, pack.x);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = dy[i] * gelu_slope<kTanh>(x[i]);
    store_floats(a.dx, at.row, at.col, x);
  }
};

template <bool kTanh>
void gelu_form(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &y = call.outputs[0];
  with_float_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    with_width<kWide>(packs_fit(kWide, {&x, &y}), [&](auto width) {
      launch_elementwise<Gelu<T, width(), kTanh>>(
          stream, {row_shape({&x, &y}), rows_of<const T>(x), rows_of<T>(y)});
    });
  });
}

template <bool kTanh>
void gelu_backward_form(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  with_float_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    with_width<kWide>(packs_fit(kWide, {&dy, &x, &dx}), [&](auto width) {
      launch_elementwise<GeluBackward<T, width(), kTanh>>(
          stream,
          {row_shape({&dy, &x, &dx}), rows_of<const T>(dy), rows_of<const T>(x), rows_of<T>(dx)});
    });
  });
}

}  // namespace

void gelu(kernels::Stream& stream, const kernels::KernelCall& call) {
  if (call.attributes.integer("tanh") != 0)
    gelu_form<true>(stream, call);
  else
    gelu_form<false>(stream, call);
}

void gelu_backward(kernels::Stream& stream, const kernels::KernelCall& call) {
  if (call.attributes.integer("tanh") != 0)
    gelu_backward_form<true>(stream, call);
  else
    gelu_backward_form<false>(stream, call);
}

}  // namespace strata::cuda

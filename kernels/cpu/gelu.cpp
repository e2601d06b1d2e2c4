#include "kernels/ops/gelu.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gelu.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_targets.h"

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

// (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its accuracy where tanh(u) is near -1.
constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

void gelu_tanh_row(const float* x, float* y, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V v = lanes.load(x);
    const V slope =
        hn::MulAdd(hn::Mul(v, v), all(kTwiceSqrt2OverPi * kCubic), all(kTwiceSqrt2OverPi));
    lanes.store(hn::Mul(v, sigmoid_lanes(hn::Mul(v, slope)).value), y);
  });
}

void gelu_erf_row(const float* x, float* y, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V v = lanes.load(x);
    const V half = hn::Mul(v, all(0.5f));
    lanes.store(hn::MulAdd(half, erf_lanes(hn::Mul(v, all(0.70710678118654752f))), half), y);
  });
}

void gelu_tanh_backward_row(const float* dy, const float* x, float* dx, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    // Clamping to +-20 keeps the square finite and no derivative changes. x comes second: NaN
    // stays.
    const V v = hn::Max(all(-20.0f), hn::Min(all(20.0f), lanes.load(x)));
    const V square = hn::Mul(v, v);
    const V slope = hn::MulAdd(square, all(kTwiceSqrt2OverPi * kCubic), all(kTwiceSqrt2OverPi));
    const V steepness =
        hn::MulAdd(square, all(3 * kTwiceSqrt2OverPi * kCubic), all(kTwiceSqrt2OverPi));
    const SigmoidPair s = sigmoid_lanes(hn::Mul(v, slope));
    const V bend = hn::Mul(hn::Mul(hn::Mul(v, s.complement), steepness), s.value);
    lanes.store(hn::Mul(lanes.load(dy), hn::Add(s.value, bend)), dx);
  });
}

void gelu_erf_backward_row(const float* dy, const float* x, float* dx, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V v = hn::Max(all(-20.0f), hn::Min(all(20.0f), lanes.load(x)));
    const V cumulative =
        hn::MulAdd(all(0.5f), erf_lanes(hn::Mul(v, all(0.70710678118654752f))), all(0.5f));
    const V density =
        hn::Mul(all(0.3989422804014327f), exp_lanes(hn::Mul(hn::Mul(v, v), all(-0.5f))));
    lanes.store(hn::Mul(lanes.load(dy), hn::MulAdd(v, density, cumulative)), dx);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(gelu_tanh_row);
HWY_EXPORT(gelu_erf_row);
HWY_EXPORT(gelu_tanh_backward_row);
HWY_EXPORT(gelu_erf_backward_row);

void gelu_kernel(Stream& stream, const KernelCall& call) {
  const bool tanh = call.attributes.integer("tanh") != 0;
  const auto body = [tanh](const float* const* in, float* const* out, const RowPart& part) {
    if (tanh)
      HWY_DYNAMIC_DISPATCH(gelu_tanh_row)(in[0], out[0], part.count);
    else
      HWY_DYNAMIC_DISPATCH(gelu_erf_row)(in[0], out[0], part.count);
  };
  for_each_row_part(cpu(stream).pool(), {call.inputs[0]}, {call.outputs[0]}, body);
}

void gelu_backward_kernel(Stream& stream, const KernelCall& call) {
  const bool tanh = call.attributes.integer("tanh") != 0;
  const auto body = [tanh](const float* const* in, float* const* out, const RowPart& part) {
    if (tanh)
      HWY_DYNAMIC_DISPATCH(gelu_tanh_backward_row)(in[0], in[1], out[0], part.count);
    else
      HWY_DYNAMIC_DISPATCH(gelu_erf_backward_row)(in[0], in[1], out[0], part.count);
  };
  for_each_row_part(cpu(stream).pool(), {call.inputs[0], call.inputs[1]}, {call.outputs[0]}, body);
}

}  // namespace strata::kernels
#endif

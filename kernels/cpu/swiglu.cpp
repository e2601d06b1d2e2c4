#include "kernels/ops/swiglu.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/swiglu.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_targets.h"

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

void swiglu_row(const float* gate, const float* up, float* y, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V g = lanes.load(gate);
    lanes.store(hn::Mul(hn::Mul(g, sigmoid_lanes(g).value), lanes.load(up)), y);
  });
}

/// d silu(g) / dg = s + g s (1 - s), s = sigmoid(g).
void swiglu_backward_row(const float* dy, const float* gate, const float* up, float* dgate,
                         float* dup, std::int64_t n) {
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V d = lanes.load(dy), g = lanes.load(gate), u = lanes.load(up);
    const SigmoidPair s = sigmoid_lanes(g);
    const V silu = hn::Mul(g, s.value);
    lanes.store(hn::Mul(hn::Mul(d, u), hn::MulAdd(silu, s.complement, s.value)), dgate);
    lanes.store(hn::Mul(d, silu), dup);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(swiglu_row);
HWY_EXPORT(swiglu_backward_row);

void swiglu_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  const auto body = [](const float* const* in, float* const* out, const RowPart& part) {
    HWY_DYNAMIC_DISPATCH(swiglu_row)(in[0], in[1], out[0], part.count);
  };
  const std::int64_t width = y.cols();
  for_each_row_part(cpu(stream).pool(), {columns_of(x, 0, width), columns_of(x, width, width)}, {y},
                    body);
}

void swiglu_backward_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  const auto body = [](const float* const* in, float* const* out, const RowPart& part) {
    HWY_DYNAMIC_DISPATCH(swiglu_backward_row)
    (in[0], in[1], in[2], out[0], out[1], part.count);
  };
  const std::int64_t width = dy.cols();
  for_each_row_part(cpu(stream).pool(), {dy, columns_of(x, 0, width), columns_of(x, width, width)},
                    {columns_of(dx, 0, width), columns_of(dx, width, width)}, body);
}

}  // namespace strata::kernels
#endif

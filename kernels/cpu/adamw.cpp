#include "kernels/adamw.h"

#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/gradient_input.h"
#include "kernels/cpu/parameter_output.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/optimizer_settings.h"
#include "kernels/step_state.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/float16_simd-inl.h"

#ifndef STRATA_KERNELS_CPU_ADAMW_ONCE
#define STRATA_KERNELS_CPU_ADAMW_ONCE
namespace strata::kernels {
namespace {

struct AdamwRange {
  const float *master_in, *m_in, *v_in, *gradient;
  float *master, *m, *v;
  std::int64_t count;
};

}  // namespace
}  // namespace strata::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

void adamw_range(AdamwSettings settings, AdamwStep now, AdamwRange r) {
  for_each_vector(r.count, [&](auto d, std::int64_t i) HWY_ATTR {
    auto p = hn::LoadU(d, r.master_in + i);
    auto m = hn::LoadU(d, r.m_in + i);
    auto v = hn::LoadU(d, r.v_in + i);
    adamw_vector(d, settings, now, hn::LoadU(d, r.gradient + i), p, m, v);
    hn::StoreU(p, d, r.master + i);
    hn::StoreU(m, d, r.m + i);
    hn::StoreU(v, d, r.v + i);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(adamw_range);
}  // namespace

void adamw_kernel(Stream& stream, const KernelCall& call) {
  StepControl control;
  std::memcpy(&control, call.inputs[4].data, sizeof control);
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const AdamwStep now = AdamwStep::at(settings, control);
  const ParameterOutput parameter = parameter_output(call, 3);
  const GradientInput gradient(call.inputs[3]);
  const auto in = [&](std::size_t i) { return call.inputs[i].row<const float>(); };
  const auto out = [&](std::size_t i) { return call.outputs[i].row<float>(); };
  const auto update = [&](std::int64_t at, std::int64_t count) {
    GradientInput::Buffer buffer;
    const AdamwRange range{in(0) + at,  in(1) + at,  in(2) + at,  gradient.read(at, count, buffer),
                           out(0) + at, out(1) + at, out(2) + at, count};
    HWY_DYNAMIC_DISPATCH(adamw_range)(settings, now, range);
    parameter.write(range.master, at, count);
  };
  for_each_range(&cpu(stream).pool(), call.inputs[0].elements(), kTaskElements,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = begin; at < end; at += kOptimizerPiece)
                     update(at, std::min(kOptimizerPiece, end - at));
                 });
}

}  // namespace strata::kernels
#endif

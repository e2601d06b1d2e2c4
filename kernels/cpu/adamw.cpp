#include "kernels/adamw.h"

#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/gradient_input.h"
#include "kernels/cpu/parameter_output.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/step_state.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

#ifndef STRATA_KERNELS_CPU_ADAMW_ONCE
#define STRATA_KERNELS_CPU_ADAMW_ONCE
namespace strata::kernels {
namespace {

struct AdamwScalars {
  float gradient_factor, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float bias_correction2_sqrt, eps, step_size;
  float decay;  ///< of the parameter itself; 0 when not decoupled
  float l2;     ///< added to the gradient; 0 when decoupled
};

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

void adamw_range(AdamwScalars s, AdamwRange r) {
  for_each_vector(r.count, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto p = hn::LoadU(d, r.master_in + i);
    auto g = hn::Mul(hn::LoadU(d, r.gradient + i), hn::Set(d, s.gradient_factor));
    if (s.l2 != 0) g = hn::Add(g, hn::Mul(hn::Set(d, s.l2), p));
    const auto m = hn::Add(hn::Mul(hn::Set(d, s.beta1), hn::LoadU(d, r.m_in + i)),
                           hn::Mul(hn::Set(d, s.one_minus_beta1), g));
    const auto v = hn::Add(hn::Mul(hn::Set(d, s.beta2), hn::LoadU(d, r.v_in + i)),
                           hn::Mul(hn::Set(d, s.one_minus_beta2), hn::Mul(g, g)));
    const auto denominator =
        hn::Add(hn::Div(hn::Sqrt(v), hn::Set(d, s.bias_correction2_sqrt)), hn::Set(d, s.eps));
    auto update = hn::Mul(hn::Set(d, s.step_size), hn::Div(m, denominator));
    if (s.decay != 0) update = hn::Add(update, hn::Mul(hn::Set(d, s.decay), p));
    hn::StoreU(hn::Sub(p, update), d, r.master + i);
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

AdamwScalars scalars_of(const StepControl& control, const Attributes& attributes) {
  const double beta1 = attributes.real("beta1");
  const double beta2 = attributes.real("beta2");
  const double decay = attributes.real("weight_decay");
  const bool decoupled = attributes.integer("decoupled") != 0;
  const double rate = control.learning_rate;
  return {.gradient_factor = control.gradient_factor,
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .bias_correction2_sqrt = control.bias_correction2_sqrt,
          .eps = static_cast<float>(attributes.real("eps")),
          .step_size = static_cast<float>(rate / control.bias_correction1),
          .decay = decoupled ? static_cast<float>(rate * decay) : 0,
          .l2 = decoupled ? 0 : static_cast<float>(decay)};
}
}  // namespace

void adamw_kernel(Stream& stream, const KernelCall& call) {
  StepControl control;
  std::memcpy(&control, call.inputs[4].data, sizeof control);
  const AdamwScalars scalars = scalars_of(control, call.attributes);
  const ParameterOutput parameter = parameter_output(call, 3);
  const GradientInput gradient(call.inputs[3]);
  const auto in = [&](std::size_t i) { return call.inputs[i].row<const float>(); };
  const auto out = [&](std::size_t i) { return call.outputs[i].row<float>(); };
  const auto update = [&](std::int64_t at, std::int64_t count) {
    GradientInput::Buffer buffer;
    const AdamwRange range{in(0) + at,  in(1) + at,  in(2) + at,  gradient.read(at, count, buffer),
                           out(0) + at, out(1) + at, out(2) + at, count};
    HWY_DYNAMIC_DISPATCH(adamw_range)(scalars, range);
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

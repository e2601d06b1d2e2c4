#include "kernels/adamw.h"

#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/optimizer_settings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/optimizer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// kernels/adamw.h. No fused multiply-add: every operation is rounded by itself.
struct AdamwUpdate {
  static constexpr std::size_t kMoments = 2;
  static constexpr bool kStochasticState = true;
  AdamwSettings s;
  AdamwStep now;

  template <class D, class Vector = hn::Vec<D>>
  HWY_INLINE void operator()(D d, Vector gradient, Vector& p, Vector (&moments)[2]) const {
    Vector &m = moments[0], &v = moments[1];
    auto g = hn::Mul(gradient, hn::Set(d, now.gradient_factor));
    if (s.l2 != 0) g = hn::Add(g, hn::Mul(hn::Set(d, s.l2), p));
    m = hn::Add(hn::Mul(hn::Set(d, s.beta1), m), hn::Mul(hn::Set(d, s.one_minus_beta1), g));
    v = hn::Add(hn::Mul(hn::Set(d, s.beta2), v),
                hn::Mul(hn::Set(d, s.one_minus_beta2), hn::Mul(g, g)));
    const auto denominator =
        hn::Add(hn::Div(hn::Sqrt(v), hn::Set(d, now.bias_correction2_sqrt)), hn::Set(d, s.eps));
    auto update = hn::Mul(hn::Set(d, now.step_size), hn::Div(m, denominator));
    if (now.decay != 0) update = hn::Add(update, hn::Mul(hn::Set(d, now.decay), p));
    p = hn::Sub(p, update);
  }
};

void adamw_range(AdamwSettings settings, AdamwStep now, const OptimizerRange& range) {
  update_range(range, AdamwUpdate{settings, now});
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {

HWY_EXPORT(adamw_range);

void run(Stream& stream, const KernelCall& call, MasterFormat format) {
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const OptimizerRange range = OptimizerRange::of(call, format, 2);
  const AdamwStep now = AdamwStep::at(settings, control_of(call, format, 2));
  for_each_part(stream, range, [&](const OptimizerRange& part) {
    HWY_DYNAMIC_DISPATCH(adamw_range)(settings, now, part);
  });
}

}  // namespace

void adamw_kernel(Stream& stream, const KernelCall& call) { run(stream, call, MasterFormat::f32); }

void adamw_packed_kernel(Stream& stream, const KernelCall& call) {
  run(stream, call, MasterFormat::packed);
}

void adamw_bf16_kernel(Stream& stream, const KernelCall& call) {
  run(stream, call, MasterFormat::stochastic_bf16);
}

}  // namespace strata::kernels
#endif

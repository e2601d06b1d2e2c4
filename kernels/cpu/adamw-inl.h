// One vector of adamw (kernels/ops/adamw.h), shared by its kernels.

// Compiled once per Highway target, hence the toggling guard.
#if defined(STRATA_KERNELS_CPU_ADAMW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_ADAMW_INL_H_
#undef STRATA_KERNELS_CPU_ADAMW_INL_H_
#else
#define STRATA_KERNELS_CPU_ADAMW_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/ops/optimizer_settings.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The update of adamw for update_range (optimizer-inl.h). No multiply-add is fused.
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

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

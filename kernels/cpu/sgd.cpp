#include "kernels/ops/sgd.h"

#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/optimizer_settings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sgd.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/optimizer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// The update of kernels/ops/sgd.h. No multiply-add is fused: each operation is rounded by itself.
template <std::size_t kMomentum>
struct SgdUpdate {
  static constexpr std::size_t kMoments = kMomentum;
  static constexpr bool kStochasticState = false;
  SgdSettings s;
  StepControl control;

  template <class D, class Vector = hn::Vec<D>>
  HWY_INLINE void operator()(D d, Vector gradient, Vector& p, Vector (&moments)[1]) const {
    auto g = hn::Mul(gradient, hn::Set(d, control.gradient_factor));
    if (s.weight_decay != 0) g = hn::Add(g, hn::Mul(hn::Set(d, s.weight_decay), p));
    if constexpr (kMomentum > 0) {
      const auto momentum = hn::Set(d, s.momentum);
      auto b = g;  // before the first update the buffer holds anything
      if (control.first_update == 0)
        b = hn::Add(hn::Mul(momentum, moments[0]), hn::Mul(hn::Set(d, s.one_minus_dampening), g));
      moments[0] = b;
      g = s.nesterov ? hn::Add(g, hn::Mul(momentum, b)) : b;
    }
    p = hn::Sub(p, hn::Mul(hn::Set(d, control.learning_rate), g));
  }
};

void sgd_range(SgdSettings settings, StepControl control, const OptimizerRange& range) {
  if (range.moment[0] != nullptr)
    update_range(range, SgdUpdate<1>{settings, control});
  else
    update_range(range, SgdUpdate<0>{settings, control});
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(sgd_range);
}  // namespace

void sgd_kernel(Stream& stream, const KernelCall& call) {
  const std::size_t moments = call.attributes.real("momentum", 0) > 0 ? 1 : 0;
  const SgdSettings settings = SgdSettings::from(call.attributes);
  const StepControl control = control_of(call, UpdatedFormat::f32, moments);
  for_each_part(stream, OptimizerRange::of(call, UpdatedFormat::f32, moments),
                [&](const OptimizerRange& part) {
                  HWY_DYNAMIC_DISPATCH(sgd_range)(settings, control, part);
                });
}

}  // namespace strata::kernels
#endif

#include "kernels/ops/lion.h"

#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/optimizer_settings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lion.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/optimizer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// The update of kernels/ops/lion.h. No multiply-add is fused: each operation is rounded by itself.
struct LionUpdate {
  static constexpr std::size_t kMoments = 1;
  static constexpr bool kStochasticState = true;
  LionSettings s;
  LionStep now;

  template <class D, class Vector = hn::Vec<D>>
  HWY_INLINE void operator()(D d, Vector gradient, Vector& p, Vector (&moments)[1]) const {
    Vector& m = moments[0];
    const auto g = hn::Mul(gradient, hn::Set(d, now.gradient_factor));
    const auto c =
        hn::Add(hn::Mul(hn::Set(d, s.beta1), m), hn::Mul(hn::Set(d, s.one_minus_beta1), g));
    auto update = hn::Mul(hn::Set(d, now.learning_rate), sign(d, c));
    if (now.decay != 0) update = hn::Add(update, hn::Mul(hn::Set(d, now.decay), p));
    p = hn::Sub(p, update);
    m = hn::Add(hn::Mul(hn::Set(d, s.beta2), m), hn::Mul(hn::Set(d, s.one_minus_beta2), g));
  }

 private:
  template <class D, class Vector = hn::Vec<D>>
  static HWY_INLINE Vector sign(D d, Vector c) {
    // Zeros and NaN are their own sign here.
    const auto one = hn::CopySign(hn::Set(d, 1.0F), c);
    return hn::IfThenElse(hn::Gt(hn::Abs(c), hn::Zero(d)), one, c);
  }
};

void lion_range(LionSettings settings, LionStep now, const OptimizerRange& range) {
  update_range(range, LionUpdate{settings, now});
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {

HWY_EXPORT(lion_range);

void run(Stream& stream, const KernelCall& call, UpdatedFormat format) {
  const LionSettings settings = LionSettings::from(call.attributes);
  const OptimizerRange range = OptimizerRange::of(call, format, 1);
  const LionStep now = LionStep::at(settings, control_of(call, format, 1));
  for_each_part(stream, range, [&](const OptimizerRange& part) {
    HWY_DYNAMIC_DISPATCH(lion_range)(settings, now, part);
  });
}

}  // namespace

void lion_kernel(Stream& stream, const KernelCall& call) { run(stream, call, UpdatedFormat::f32); }

void lion_packed_kernel(Stream& stream, const KernelCall& call) {
  run(stream, call, UpdatedFormat::packed);
}

}  // namespace strata::kernels
#endif

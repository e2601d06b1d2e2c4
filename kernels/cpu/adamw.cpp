#include "kernels/ops/adamw.h"

#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/optimizer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

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

void run(Stream& stream, const KernelCall& call, UpdatedFormat format) {
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const OptimizerRange range = OptimizerRange::of(call, format, 2);
  const AdamwStep now = AdamwStep::at(settings, control_of(call, format, 2));
  for_each_part(stream, range, [&](const OptimizerRange& part) {
    HWY_DYNAMIC_DISPATCH(adamw_range)(settings, now, part);
  });
}

}  // namespace

void adamw_kernel(Stream& stream, const KernelCall& call) { run(stream, call, UpdatedFormat::f32); }

void adamw_packed_kernel(Stream& stream, const KernelCall& call) {
  run(stream, call, UpdatedFormat::packed);
}

void adamw_bf16_kernel(Stream& stream, const KernelCall& call) {
  run(stream, call, UpdatedFormat::stochastic_bf16);
}

}  // namespace strata::kernels
#endif

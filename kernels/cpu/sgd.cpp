#include "kernels/sgd.h"

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
#define HWY_TARGET_INCLUDE "kernels/cpu/sgd.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

#ifndef STRATA_KERNELS_CPU_SGD_ONCE
#define STRATA_KERNELS_CPU_SGD_ONCE
namespace strata::kernels {
namespace {

struct SgdRange {
  const float *master_in, *momentum_in, *gradient;
  float *master, *momentum;  ///< momentum: nullptr without
  std::int64_t count;
};

}  // namespace
}  // namespace strata::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

void sgd_range(SgdSettings s, StepControl control, SgdRange r) {
  for_each_vector(r.count, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto p = hn::LoadU(d, r.master_in + i);
    auto g = hn::Mul(hn::LoadU(d, r.gradient + i), hn::Set(d, control.gradient_factor));
    if (s.weight_decay != 0) g = hn::Add(g, hn::Mul(hn::Set(d, s.weight_decay), p));
    if (r.momentum != nullptr) {
      const auto momentum = hn::Set(d, s.momentum);
      auto b = g;
      if (control.first_update == 0)
        b = hn::Add(hn::Mul(momentum, hn::LoadU(d, r.momentum_in + i)),
                    hn::Mul(hn::Set(d, s.one_minus_dampening), g));
      hn::StoreU(b, d, r.momentum + i);
      g = s.nesterov ? hn::Add(g, hn::Mul(momentum, b)) : b;
    }
    hn::StoreU(hn::Sub(p, hn::Mul(hn::Set(d, control.learning_rate), g)), d, r.master + i);
  });
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
  const bool momentum = call.attributes.real("momentum", 0) > 0;
  const std::size_t gradient_input = momentum ? 2 : 1;
  StepControl control;
  std::memcpy(&control, call.inputs[gradient_input + 1].data, sizeof control);
  const SgdSettings settings = SgdSettings::from(call.attributes);
  const ParameterOutput parameter = parameter_output(call, momentum ? 2 : 1);
  const GradientInput gradient(call.inputs[gradient_input]);
  const auto* master_in = call.inputs[0].row<const float>();
  auto* master = call.outputs[0].row<float>();
  const auto update = [&](std::int64_t begin, std::int64_t count) {
    GradientInput::Buffer buffer;
    SgdRange range{master_in + begin, nullptr, gradient.read(begin, count, buffer),
                   master + begin,    nullptr, count};
    if (momentum) {
      range.momentum_in = call.inputs[1].row<const float>() + begin;
      range.momentum = call.outputs[1].row<float>() + begin;
    }
    HWY_DYNAMIC_DISPATCH(sgd_range)(settings, control, range);
    parameter.write(range.master, begin, count);
  };
  for_each_range(&cpu(stream).pool(), call.inputs[0].elements(), kTaskElements,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = begin; at < end; at += kOptimizerPiece)
                     update(at, std::min(kOptimizerPiece, end - at));
                 });
}

}  // namespace strata::kernels
#endif

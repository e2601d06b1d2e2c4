// kernels/adamw.h and kernels/adamw_bf16.h on CUDA.
#include "kernels/adamw.h"

#include <cmath>

#include "kernels/adamw_bf16.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/optimizer.cuh"
#include "kernels/optimizer_settings.h"

namespace strata::cuda {
namespace {

using kernels::AdamwSettings;
using kernels::AdamwStep;

struct AdamwUpdate {
  using Settings = AdamwSettings;
  static constexpr int kMoments = 2;

  static STRATA_DEVICE AdamwStep at(const AdamwSettings& settings,
                                    const kernels::StepControl& control) {
    return AdamwStep::at(settings, control);
  }

  /// No fused multiply-add: every operation is rounded by itself.
  static STRATA_DEVICE void element(const AdamwSettings& s, const AdamwStep& now, float gradient,
                                    float& p, float (&moments)[2]) {
    float &m = moments[0], &v = moments[1];
    float g = gradient * now.gradient_factor;
    if (s.l2 != 0) g = g + s.l2 * p;
    m = s.beta1 * m + s.one_minus_beta1 * g;
    v = s.beta2 * v + s.one_minus_beta2 * (g * g);
    const float denominator = std::sqrt(v) / now.bias_correction2_sqrt + s.eps;
    float update = now.step_size * (m / denominator);
    if (now.decay != 0) update = update + now.decay * p;
    p = p - update;
  }
};

}  // namespace

void adamw(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_optimizer<AdamwUpdate>(stream, call, AdamwSettings::from(call.attributes));
}

void adamw_packed(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_packed_optimizer<AdamwUpdate>(stream, call, AdamwSettings::from(call.attributes));
}

void adamw_bf16(kernels::Stream& stream, const kernels::KernelCall& call) {
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const auto start = [&](auto gradient) {
    using Formats = OptimizerFormats<StochasticParameter, Bf16, decltype(gradient), NoParameter>;
    start_optimizer<Formats, AdamwUpdate>(stream, call, settings);
  };
  if (call.inputs[3].dtype() == DType::f32)
    start(float{});
  else
    start(Bf16{});
}

}  // namespace strata::cuda

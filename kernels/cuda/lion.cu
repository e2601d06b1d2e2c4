// Implements kernels/ops/lion.h on CUDA.
#include "kernels/ops/lion.h"

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/optimizer.cuh"
#include "kernels/ops/optimizer_settings.h"

namespace strata::cuda {
namespace {

using kernels::LionSettings;
using kernels::LionStep;

struct LionUpdate {
  using Settings = LionSettings;
  static constexpr int kMoments = 1;

  static STRATA_DEVICE LionStep at(const LionSettings& settings,
                                   const kernels::StepControl& control) {
    return LionStep::at(settings, control);
  }

  /// Updates one element; every operation is rounded by itself (no fma), as on the CPU.
  static STRATA_DEVICE void element(const LionSettings& s, const LionStep& now, float gradient,
                                    float& p, float (&moments)[1]) {
    float& m = moments[0];
    const float g = gradient * now.gradient_factor;
    const float c = s.beta1 * m + s.one_minus_beta1 * g;
    const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : c;  // zeros and NaN stay what they are
    float update = now.learning_rate * sign;
    if (now.decay != 0) update = update + now.decay * p;
    p = p - update;
    m = s.beta2 * m + s.one_minus_beta2 * g;
  }
};

}  // namespace

void lion(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_optimizer<LionUpdate>(stream, call, LionSettings::from(call.attributes));
}

void lion_packed(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_packed_optimizer<LionUpdate>(stream, call, LionSettings::from(call.attributes));
}

}  // namespace strata::cuda

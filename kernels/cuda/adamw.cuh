// The update of one element by AdamW (kernels/ops/adamw.h), which all its kernels share.
#pragma once

#include <cmath>

#include "kernels/cuda/device.cuh"
#include "kernels/ops/optimizer_settings.h"

namespace strata::cuda {

struct AdamwUpdate {
  using Settings = kernels::AdamwSettings;
  static constexpr int kMoments = 2;

  static STRATA_DEVICE kernels::AdamwStep at(const kernels::AdamwSettings& settings,
                                             const kernels::StepControl& control) {
    return kernels::AdamwStep::at(settings, control);
  }

  /// Updates one element; every operation is rounded by itself (no fma), as on the CPU.
  static STRATA_DEVICE void element(const kernels::AdamwSettings& s, const kernels::AdamwStep& now,
                                    float gradient, float& p, float (&moments)[2]) {
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

}  // namespace strata::cuda

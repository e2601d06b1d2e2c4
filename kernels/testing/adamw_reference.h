// adamw for one element, as kernels/ops/adamw.h defines it: fp32, every operation rounded by
// itself.
#pragma once

#include <cmath>

#include "kernels/device/attributes.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

inline void adamw_reference(float& p, float& m, float& v, float gradient,
                            const StepControl& control, const Attributes& attributes) {
  const double beta1 = attributes.real("beta1");
  const double beta2 = attributes.real("beta2");
  const double weight_decay = attributes.real("weight_decay");
  const bool decoupled = attributes.integer("decoupled") != 0;
  const double rate = control.learning_rate;
  const auto decay = static_cast<float>(rate * weight_decay);
  const auto step_size = static_cast<float>(rate / control.bias_correction1);

  float g = gradient * control.gradient_factor;
  if (!decoupled && weight_decay != 0) g = g + static_cast<float>(weight_decay) * p;
  m = static_cast<float>(beta1) * m + static_cast<float>(1 - beta1) * g;
  v = static_cast<float>(beta2) * v + static_cast<float>(1 - beta2) * (g * g);
  const float denominator =
      std::sqrt(v) / control.bias_correction2_sqrt + static_cast<float>(attributes.real("eps"));
  float update = step_size * (m / denominator);
  if (decoupled && weight_decay != 0) update = update + decay * p;
  p = p - update;
}

}  // namespace strata::kernels

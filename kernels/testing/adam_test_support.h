// Helpers of the tests of Adam's kernels.
#pragma once

#include <cmath>

#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// Returns the control of step `t`, from 1, with betas 0.9 and 0.999. The gradient's factor is not
/// 1, so that a kernel that forgets it is noticed.
inline StepControl control_at(int t, float learning_rate, float gradient_factor = 0.5F) {
  StepControl control;
  control.apply = 1;
  control.gradient_factor = gradient_factor;
  control.learning_rate = learning_rate;
  control.bias_correction1 = static_cast<float>(1 - std::pow(0.9, t));
  control.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(0.999, t)));
  return control;
}

}  // namespace strata::kernels

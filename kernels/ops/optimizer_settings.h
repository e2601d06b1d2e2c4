// The scalars with which optimizer kernels compute: those of the attributes, and those of a step.
// Host and device share them, so that all backends round them alike.
#pragma once

#include "kernels/device/attributes.h"
#include "kernels/math/host_device.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// The attributes of adamw (kernels/ops/adamw.h), each rounded to fp32 once.
struct AdamwSettings {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float l2;      ///< weight decay that is added to the gradient; 0 when decoupled
  double decay;  ///< decoupled weight decay; 0 when not decoupled

  static AdamwSettings from(const Attributes& attributes) {
    const double beta1 = attributes.real("beta1"), beta2 = attributes.real("beta2");
    const double decay = attributes.real("weight_decay");
    const bool decoupled = attributes.integer("decoupled") != 0;
    return {.beta1 = static_cast<float>(beta1),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .eps = static_cast<float>(attributes.real("eps")),
            .l2 = decoupled ? 0 : static_cast<float>(decay),
            .decay = decoupled ? decay : 0};
  }
};

struct AdamwStep {
  float gradient_factor, bias_correction2_sqrt, step_size;
  float decay;  ///< part of the parameter that is taken away; 0: none

  STRATA_HOST_DEVICE static AdamwStep at(const AdamwSettings& settings,
                                         const StepControl& control) {
    // This fp32 division gives the bits of an fp64 division rounded to fp32 (adamw.h): no quotient
    // of two 24-bit numbers lies so close to a tie that rounding twice would change it.
    return {.gradient_factor = control.gradient_factor,
            .bias_correction2_sqrt = control.bias_correction2_sqrt,
            .step_size = control.learning_rate / control.bias_correction1,
            .decay = static_cast<float>(control.learning_rate * settings.decay)};
  }
};

/// The attributes of lion (kernels/ops/lion.h), each rounded to fp32 once.
struct LionSettings {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  double decay;

  static LionSettings from(const Attributes& attributes) {
    const double beta1 = attributes.real("beta1"), beta2 = attributes.real("beta2");
    return {.beta1 = static_cast<float>(beta1),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .decay = attributes.real("weight_decay")};
  }
};

struct LionStep {
  float gradient_factor, learning_rate;
  float decay;  ///< part of the parameter that is taken away; 0: none

  STRATA_HOST_DEVICE static LionStep at(const LionSettings& settings, const StepControl& control) {
    return {.gradient_factor = control.gradient_factor,
            .learning_rate = control.learning_rate,
            .decay = static_cast<float>(control.learning_rate * settings.decay)};
  }
};

/// The attributes of sgd (kernels/ops/sgd.h), each rounded to fp32 once.
struct SgdSettings {
  float weight_decay, momentum, one_minus_dampening;
  bool nesterov;

  static SgdSettings from(const Attributes& attributes) {
    return {.weight_decay = static_cast<float>(attributes.real("weight_decay", 0)),
            .momentum = static_cast<float>(attributes.real("momentum", 0)),
            .one_minus_dampening = static_cast<float>(1 - attributes.real("dampening", 0)),
            .nesterov = attributes.integer("nesterov", 0) != 0};
  }
};

}  // namespace strata::kernels

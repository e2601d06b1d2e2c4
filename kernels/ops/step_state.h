// The state that changes during a run and steers its steps, as buffers of the arena (design 2.8):
// nothing on the host decides during a step. These are plain structs of 8-byte or 4-byte fields, so
// that a device kernel can read them and `--dump-state` can list them.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// Persistent, replicated, updated once per step by `step_control`.
struct StepState {
  double loss_scale = 1;        ///< in force for the micro-steps of the current step
  std::int64_t hysteresis = 1;  ///< overflows still tolerated before the scale is halved
  std::int64_t scale_step = 0;  ///< i of the loss scaler: steps seen, skipped ones included
  std::int64_t last_overflow = -1;
  std::int64_t updates = 0;   ///< optimizer steps applied (t of AdamW), skipped steps excluded
  std::int64_t skipped = 0;   ///< steps skipped so far
  double beta1_power = 1;     ///< beta1^updates
  double beta2_power = 1;     ///< beta2^updates
  std::int64_t at_floor = 0;  ///< 1 after an overflow at the smallest loss scale: the run must stop
};

/// Written by `step_control` in each step, read by optimizer kernels and predicates.
struct StepControl {
  std::uint32_t apply = 0;    ///< predicate of updates that wait for the step: 0 skips it
  float gradient_factor = 1;  ///< 1 / (clip factor * loss scale), multiplies every gradient
  float learning_rate = 0;
  float bias_correction1 = 1;       ///< 1 - beta1^t (1 when bias correction is off)
  float bias_correction2_sqrt = 1;  ///< sqrt(1 - beta2^t)
  std::uint32_t first_update = 0;   ///< 1: no update was applied before (SGD copies the gradient)
  /// Predicates of the copies that hand the metrics to the host: slot[i] is 1 in every second step,
  /// from step i on.
  std::uint32_t slot[2] = {};
};
static_assert(sizeof(StepControl) == 32);

/// The metrics of a step, which the host reads one step late from the slot that StepControl::slot
/// chose. Loss and norm are NaN if a part of them was not finite.
struct StepMetrics {
  std::int64_t step = 0;     ///< steps before this one, skipped ones included
  double loss = 0;           ///< mean over the step's valid targets, before the update
  double gradient_norm = 0;  ///< global L2 norm of the averaged, unscaled gradient, before clipping
  double learning_rate = 0;
  double loss_scale = 1;  ///< the one that this step used
  std::int64_t updates = 0;
  std::int64_t skipped = 0;
  std::int64_t overflow = 0;  ///< 1: this step was skipped
  std::int64_t flags = 0;     ///< bit i: some rank raised flag i of AgreedWord
  std::int64_t at_floor = 0;
};

/// The unit of losses in the agreed word, nats.
inline constexpr double kLossUnit = 0x1p-40;

/// Layout of the integers that all ranks add up once per step (design 2.17): an exact fixed-point
/// sum of squares (see wide_sum.h), the loss, counts of what was not finite, one word per flag. A
/// rank raises a flag by any number but 0; whoever lays the word out says what flags mean
/// (train/engine/engine.h).
struct AgreedWord {
  static constexpr int kDigits = 69;  ///< 32-bit digits of the sum of squares, each in an int64
  static constexpr int kNonFiniteLoss = 69;  ///< losses that were NaN or infinite
  static constexpr int kNonFinite = 70;      ///< these, and gradient cells with a NaN or infinity
  static constexpr int kLoss = 71;           ///< sum of losses (add_loss.h), in units of kLossUnit
  static constexpr int kFirstFlag = 72;
  static constexpr int kFlags = 8;
  static constexpr int kWords = 80;
};

}  // namespace strata::kernels

// Adds this rank's loss to the agreed word.
//
// inputs   word i64 [AgreedWord::kWords], loss f64 [1]: this micro-step's part of its leaf's loss
//          (kernels/ops/gradient_scale.h)
// attributes  leaves (default 1): virtual ranks whose losses this rank adds up, at most
//          kMaxLossLeaves
// outputs  word (in place): kLoss grows by the loss in units of 2^-40, to nearest even. It stays
//          within +-(2^53 - 1) units per leaf (a loss of 8,192), so that 1,024 leaves add up
//          without overflow. A loss that is not finite or would pass that limit, which no model
//          that learns comes near, counts in kNonFiniteLoss and kNonFinite instead. A leaf that has
//          all targets of the step adds the step's loss times the number of leaves.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/math/host_device.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

inline constexpr std::int64_t kMaxLossLeaves = 512;

/// Adds `loss` to `sum`. Returns false and adds nothing if the loss is not finite or the sum would
/// pass its limit. `leaves` is at most kMaxLossLeaves, so that no addition overflows.
STRATA_HOST_DEVICE inline bool add_loss_units(std::int64_t& sum, double loss, std::int64_t leaves) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 53) - 1;
  constexpr double kRealLimit = kLimit;
  const double units = loss * (1 / kLossUnit);
  if (!(std::abs(units) <= kRealLimit)) return false;  // also for NaN
  const std::int64_t next = sum + std::llrint(units);
  if (next > leaves * kLimit || next < -leaves * kLimit) return false;
  sum = next;
  return true;
}

const Operation& add_loss_operation();

}  // namespace strata::kernels

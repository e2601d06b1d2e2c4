// This rank's loss into the agreed word.
//
// inputs   word i64 [AgreedWord::kWords], loss f64 [1]: this micro-step's part of the rank's mean
//          loss
// attributes  leaves (default 1): virtual ranks whose losses this rank adds up, at most
//          kMaxLossLeaves
// outputs  word (in place): kLoss grows by the loss in units of 2^-40, to nearest even. It stays
//          within +-(2^53 - 1) units per leaf (a loss of 8,192), so that 1,024 leaves add up
//          without overflow. A loss that is not finite counts in kNonFiniteLoss and kNonFinite
//          instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/operation.h"

namespace strata::kernels {

inline constexpr std::int64_t kMaxLossLeaves = 512;

/// What kLoss becomes; `loss` is finite, `leaves` at most kMaxLossLeaves, so that no
/// addition overflows.
STRATA_HOST_DEVICE inline std::int64_t add_loss_units(std::int64_t sum, double loss,
                                                      std::int64_t leaves) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 53) - 1;
  constexpr double kRealLimit = kLimit;
  const std::int64_t units = std::llrint(std::clamp(loss * 0x1p40, -kRealLimit, kRealLimit));
  return std::clamp(sum + units, -leaves * kLimit, leaves * kLimit);
}

const Operation& add_loss_operation();

}  // namespace strata::kernels

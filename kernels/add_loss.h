// This rank's loss into the agreed word.
//
// inputs   word i64 [AgreedWord::kWords], loss f64 [1]: this micro-step's part of the rank's mean
// loss outputs  word (in place): kLoss grows by the loss in units of 2^-40, to nearest even. It
// stays
//          within +-(2^53 - 1) units (a loss of 8,192), so that 1,024 ranks add up without
//          overflow. A loss that is not finite counts in kNonFiniteLoss and kNonFinite instead.
#pragma once

#include "kernels/operation.h"

namespace strata::kernels {

const Operation& add_loss_operation();

}  // namespace strata::kernels

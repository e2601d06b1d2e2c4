// A device's kernels for tests.
#pragma once

#include "kernels/device/device.h"
#include "kernels/testing/test_runner.h"

namespace strata::cuda {

/// Runs the operation's kernel on `device` and waits for it (StagedCall says what is checked). What
/// goes wrong is thrown as InternalError with the operation and its operands. `device` outlives the
/// runner.
kernels::Runner device_runner(kernels::Device& device);

/// Whether the tests of this program run our own kernels alone: STRATA_OWN_KERNELS is set. Else
/// libraries run what they can, as in training.
bool tests_own_kernels();

/// The first GPU, opened once for all tests of a program.
kernels::Device& tested_gpu();

}  // namespace strata::cuda

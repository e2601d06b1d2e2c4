// Runs a device's kernels in tests.
#pragma once

#include "kernels/device/device.h"
#include "kernels/testing/test_runner.h"

namespace strata::cuda {

/// Returns a runner of operations, which runs the kernel on `device`, waits for it, and checks what
/// StagedCall checks. Throws all errors as InternalError with the operation and its operands.
/// `device` must outlive the runner.
kernels::Runner device_runner(kernels::Device& device);

/// True if STRATA_OWN_KERNELS is set: the tests of this program then run our own kernels alone.
/// Else libraries run what they can, as in training.
bool tests_own_kernels();

/// Returns the first GPU, opened once for all tests of a program.
kernels::Device& tested_gpu();

}  // namespace strata::cuda

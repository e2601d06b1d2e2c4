// The CUDA backend for tests, on a GPU.
#pragma once

#include "kernels/test_runner.h"

namespace strata::cuda {

/// Runs the operation's CUDA kernel on the current device and waits for it (StagedCall says what is
/// checked). What goes wrong is thrown as InternalError with the operation and its operands.
kernels::Runner device_runner();

}  // namespace strata::cuda

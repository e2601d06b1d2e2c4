// The CPU backend for tests.
#pragma once

#include "kernels/testing/test_runner.h"

namespace strata::kernels {

/// Runs `kernel`, or the operation's own when null, on a device with `threads` threads. Workspace
/// is aligned as arenas align and holds a pattern, as uninitialized memory may.
Runner cpu_runner(int threads, Kernel kernel = nullptr);

}  // namespace strata::kernels

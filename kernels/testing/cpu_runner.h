// The CPU backend for tests.
#pragma once

#include "kernels/testing/test_runner.h"

namespace strata::kernels {

/// Returns a runner of `kernel`, or of each operation's own if null, on a device with `threads`
/// threads. Workspace is aligned as in arenas and holds a pattern, as uninitialized memory may.
Runner cpu_runner(int threads, Kernel kernel = nullptr);

}  // namespace strata::kernels

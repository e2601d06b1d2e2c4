// Checks that this binary's kernels can run on the current device.
#pragma once

namespace strata::cuda {

/// Returns false if the binary has no code for the device's architecture. Throws HostError on other
/// failures.
bool probe_runs();

}  // namespace strata::cuda

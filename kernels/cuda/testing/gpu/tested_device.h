// The device that device_test.cpp tests, chosen at link time: the first GPU (tested_gpu.cpp) or the
// simulated one (tested_device_simulated.cpp).
#pragma once

#include "kernels/device/device.h"

namespace strata::cuda {

/// Returns the one device of all tests of a program.
kernels::Device& tested_device();

}  // namespace strata::cuda

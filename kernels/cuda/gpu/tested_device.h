// The device under device_test.cpp, chosen at link time: the first GPU (tested_gpu.cpp) or a
// simulated one (tested_device_simulated.cpp).
#pragma once

#include "kernels/device/device.h"

namespace strata::cuda {

/// One for all tests of a program.
kernels::Device& tested_device();

}  // namespace strata::cuda

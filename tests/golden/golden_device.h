// The device on which golden_device_test.cpp runs, chosen at link time.
#pragma once

#include <memory>

#include "kernels/device/device.h"

namespace strata::tests {

/// The order in which the simulation runs the threads of a block; a GPU has its own order.
enum class GoldenOrder { forward, backward, shuffled };

/// Defined in golden_device_simulated.cpp and in golden_device_gpu.cpp.
std::unique_ptr<kernels::Device> golden_device(GoldenOrder order);

}  // namespace strata::tests

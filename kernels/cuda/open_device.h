// The functions by which the rest of the system opens CUDA devices, without a CUDA header. A build
// without CUDA has them, too (device_absent.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device/device.h"

namespace strata::cuda {

struct DeviceCount {
  int devices = 0;
  std::string why_none;  ///< message if devices == 0: no CUDA in this build, no driver, an old one
};

/// Counts the devices that this process may use, after CUDA_VISIBLE_DEVICES. Never throws.
DeviceCount count_devices();

/// The choice between cuBLASLt and cuDNN where they can run a call, and our own kernels for all.
/// Tests and benchmarks use both.
enum class Libraries : std::uint8_t { used, left_out };

/// The permission for libraries to round fp32 operands of products to TF32 (10 bits of fraction),
/// which tensor cores multiply several times as fast.
enum class Tf32 : std::uint8_t { never, allowed };

/// Opens device `ordinal` of 0 .. devices - 1. Throws HostError when there is none, or when this
/// binary holds no code for its architecture.
std::unique_ptr<kernels::Device> open_device(int ordinal, Libraries libraries = Libraries::used,
                                             Tf32 tf32 = Tf32::never);

}  // namespace strata::cuda

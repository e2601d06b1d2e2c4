// The way from the rest of the system to CUDA devices, without a CUDA header. A build without CUDA
// has the same functions (device_absent.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device/device.h"

namespace strata::cuda {

struct DeviceCount {
  int devices = 0;
  std::string why_none;  ///< for people, where devices == 0: no CUDA build, no driver, an old one
};

/// Devices that this process may use (CUDA_VISIBLE_DEVICES counts). Never throws.
DeviceCount count_devices();

/// Whether cuBLASLt and cuDNN run what they can, or our own kernels everything: tests and
/// benchmarks want to see both.
enum class Libraries : std::uint8_t { used, left_out };

/// Whether libraries may round fp32 operands of products to TF32 (10 bits of fraction), which
/// tensor cores multiply several times as fast.
enum class Tf32 : std::uint8_t { never, allowed };

/// Opens device `ordinal` of 0 .. devices - 1. Throws HostError when there is none, or when this
/// binary holds no code for its architecture.
std::unique_ptr<kernels::Device> open_device(int ordinal, Libraries libraries = Libraries::used,
                                             Tf32 tf32 = Tf32::never);

}  // namespace strata::cuda

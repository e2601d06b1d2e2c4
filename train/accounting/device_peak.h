// Peak arithmetic rates of devices by name, as their vendors publish them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace strata::train {

/// Dense matrix products (no structured sparsity), FLOP/s; 0: the device does not offer the type.
/// A device that the table lacks may bring its own.
struct DevicePeak {
  std::string device;       ///< as its driver names it: "NVIDIA H200"
  double fp32 = 0;          ///< without TF32
  double bf16 = 0;          ///< bf16 and fp16, added in fp32
  double fp8 = 0;           ///< added in fp32
  double memory_bytes = 0;  ///< per second, of its own memory; 0: not known
};

/// The rate for operands of type `dtype`; 0 where there is none.
double peak_rate(const DevicePeak& peak, DType dtype);

/// Empty when the table does not know the device: nothing is guessed.
std::optional<DevicePeak> find_device_peak(std::string_view device);

}  // namespace strata::train

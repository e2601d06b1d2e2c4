// What a rank's machine does at most: what a profile holds times against.
#pragma once

#include <string>

#include "kernels/device.h"
#include "runtime/machine_rates.h"

namespace strata::train {

/// Per second; 0: not known.
struct PeakRates {
  double single_flops = 0;  ///< matrix products of fp32
  double half_flops = 0;    ///< of 16 bit
  double memory_bytes = 0;  ///< read plus written
  /// Of links and disks: what schedules assume, measured where an offloading run measures it.
  runtime::MachineRates moving;
  std::string source;  ///< where the first three come from, for people
};

/// Of a CPU: measured, products of 2048 x 2048 x 2048 and copies of 128 MiB on `threads` threads,
/// the best of a few passes (half a second on two cores). Throws OutOfMemory.
PeakRates measure_host_peaks(int threads, DType dtype, const runtime::MachineRates& moving);

/// Of a GPU: from its data sheet, where its name is known.
PeakRates device_peaks(const kernels::Device& device, const runtime::MachineRates& moving);

}  // namespace strata::train

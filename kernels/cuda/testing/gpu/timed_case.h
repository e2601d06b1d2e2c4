// Times operations on a device, for benchmarks, and prints one JSON object per operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/device/device.h"
#include "kernels/ops/operation.h"

namespace strata::cuda {

/// One operation to time, on random data. Integer inputs are drawn from [0, `below`).
struct TimedCase {
  std::string label;
  std::string_view operation;
  kernels::Types inputs;
  kernels::Attributes attributes = {};
  std::int64_t below = 1;
  bool in_place = false;  ///< outputs take the storage of inputs, where the operation offers that
};

/// Measures device-to-device copies of 1 GiB: bytes per second, read and written.
double measure_copies(kernels::Device& device, kernels::Stream& stream);

/// Prints time, GB/s, the share of `copy_rate` and TFLOP/s; if the case fails, a line that is no
/// JSON. Libraries choose their algorithms by measuring, as before a run's first step.
void measure(kernels::Device& device, kernels::Stream& stream, const TimedCase& timed,
             double copy_rate);

}  // namespace strata::cuda

// Timing operations on a device, for benchmarks: one JSON object per operation.
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
  bool in_place = false;  ///< where the operation offers it; else outputs have their own memory
};

/// Bytes per second read and written by device-to-device copies of one gigabyte.
double measure_copies(kernels::Device& device, kernels::Stream& stream);

/// Prints time, GB/s, share of `copy_rate` and TFLOP/s; a line that is no JSON where it fails.
/// Libraries choose their algorithms by measuring, as before a run's first step.
void measure(kernels::Device& device, kernels::Stream& stream, const TimedCase& timed,
             double copy_rate);

}  // namespace strata::cuda

#include "train/run/peak_rates.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/operation.h"
#include "runtime/arena.h"
#include "train/accounting/device_peak.h"
#include "train/run/copy_speed.h"

namespace strata::train {
namespace {

constexpr std::int64_t kSide = 2048;
constexpr std::int64_t kCopiedBytes = std::int64_t{128} << 20;
constexpr int kRatePasses = 4;  ///< the first warms caches and libraries up

/// Normal random numbers: products of zeros are faster on some machines.
void fill(const kernels::Tensor& tensor, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (float& value : values) value = normal(random);
  kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()),
                         tensor.dtype(), tensor.data, tensor.elements());
}

double product_rate(kernels::CpuStream& stream, DType dtype) {
  const kernels::TensorType square(dtype, {kSide, kSide});
  const kernels::Operation& linear = kernels::find_operation("linear");
  const std::int64_t bytes = square.span_bytes();
  const std::int64_t scratch_bytes = kernels::workspace_bytes(
      linear, std::vector{square, square}, std::vector{square}, {}, stream.device().capabilities());
  const runtime::Arena memory("host", 3 * bytes + scratch_bytes,
                              runtime::ArenaKind::private_memory);
  const auto tensor = [&](int place) {
    return kernels::Tensor{square, memory.base() + place * bytes};
  };
  const std::vector<kernels::Tensor> inputs{tensor(0), tensor(1)}, outputs{tensor(2)};
  fill(inputs[0], 1);
  fill(inputs[1], 2);
  const kernels::Kernel kernel = kernels::cpu_kernels().find("linear");
  const kernels::Attributes none;
  double best = 0;
  for (int pass = 0; pass < kRatePasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    kernel(stream, {inputs,
                    outputs,
                    {memory.base() + 3 * bytes, static_cast<std::size_t>(scratch_bytes)},
                    none});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * kSide * kSide * kSide / seconds);
  }
  return best;
}

}  // namespace

PeakRates measure_host_peaks(int threads, DType dtype, const runtime::MachineRates& moving) {
  PeakRates rates;
  rates.moving = moving;
  rates.memory_bytes = host_copy_rate(threads, kCopiedBytes);
  kernels::CpuDevice device(threads);
  kernels::CpuStream stream(device);
  rates.single_flops = product_rate(stream, DType::f32);
  if (dtype != DType::f32) rates.half_flops = product_rate(stream, dtype);
  rates.source = "measured on " + std::to_string(threads) + " threads";
  return rates;
}

PeakRates device_peaks(const kernels::Device& device, const runtime::MachineRates& moving) {
  PeakRates rates;
  rates.moving = moving;
  rates.source = "not known of " + device.name();
  if (const auto peak = find_device_peak(device.name())) {
    rates.single_flops = peak->fp32;
    rates.half_flops = peak->bf16;
    rates.memory_bytes = peak->memory_bytes;
    rates.source = "data sheet of " + peak->device;
  }
  return rates;
}

}  // namespace strata::train

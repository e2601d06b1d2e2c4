#include "machine/measure_cpu.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "core/aligned_memory.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/ops/operation.h"
#include "machine/copy_speed.h"
#include "machine/host_memory.h"

namespace strata::machine {
namespace {

constexpr std::int64_t kSide = 2048;
/// Larger than caches, if that much memory is available.
constexpr std::int64_t kMostCopiedBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLeastCopiedBytes = std::int64_t{1} << 20;
constexpr int kRatePasses = 4;  ///< the first pass warms up caches and libraries

/// Fills with normal random numbers, since products of zeros are faster on some machines.
void fill(const kernels::Tensor& tensor, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (float& value : values) value = normal(random);
  kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()),
                         tensor.dtype(), tensor.data, tensor.elements());
}

}  // namespace

double product_rate(int threads, DType type) {
  kernels::CpuDevice device(threads);
  kernels::CpuStream stream(device);
  const kernels::TensorType square(type, {kSide, kSide});
  const kernels::Operation& linear = kernels::find_operation("linear");
  const std::int64_t bytes = square.span_bytes();
  const std::int64_t scratch_bytes = kernels::workspace_bytes(
      linear, std::vector{square, square}, std::vector{square}, {}, device.capabilities());
  const AlignedMemory memory(3 * bytes + scratch_bytes);
  std::byte* const base = memory.bytes().data();
  const auto tensor = [&](int place) { return kernels::Tensor{square, base + place * bytes}; };
  const std::vector<kernels::Tensor> inputs{tensor(0), tensor(1)}, outputs{tensor(2)};
  fill(inputs[0], 1);
  fill(inputs[1], 2);
  const kernels::Kernel kernel = kernels::cpu_kernels().find("linear");
  const kernels::Attributes none;
  double best = 0;
  for (int pass = 0; pass < kRatePasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    kernel(stream,
           {inputs, outputs, {base + 3 * bytes, static_cast<std::size_t>(scratch_bytes)}, none});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * kSide * kSide * kSide / seconds);
  }
  return best;
}

void measure_cpu(Machine& machine, DType type) {
  const int threads = static_cast<int>(machine.processor.cores.whole());
  const std::int64_t available = available_host_bytes();
  const std::int64_t copied_bytes =
      available > 0 ? std::clamp(available / 8, kLeastCopiedBytes, kMostCopiedBytes)
                    : kMostCopiedBytes;
  machine.device.bytes_per_second = measured(host_copy_rate(threads, copied_bytes));
  machine.device.fp32_flops = measured(product_rate(threads, DType::f32));
  if (type != DType::f32) machine.device.bf16_flops = measured(product_rate(threads, type));
}

}  // namespace strata::machine

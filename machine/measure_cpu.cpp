#include "machine/measure_cpu.h"

#include <algorithm>
#include <array>
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

/// Sides of the products, the largest that has room is taken; and of the random numbers that fill
/// them, how many are made at once.
constexpr std::array<std::int64_t, 4> kSides{2048, 1024, 512, 256};
constexpr std::size_t kFilledAtOnce = 1 << 16;
/// Larger than caches, if that much memory is available. Whole huge pages.
constexpr std::int64_t kMostCopiedBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLeastCopiedBytes = std::int64_t{2} << 20;
constexpr int kRatePasses = 4;  ///< the first pass warms up caches and libraries

/// Fills with normal random numbers, since products of zeros are faster on some machines.
void fill(const kernels::Tensor& tensor, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(kFilledAtOnce);
  const std::int64_t all = tensor.elements();
  const std::int64_t size = size_of(tensor.dtype());
  for (std::int64_t done = 0; done < all;) {
    const std::int64_t count = std::min<std::int64_t>(all - done, kFilledAtOnce);
    for (float& value : values) value = normal(random);
    kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()),
                           tensor.dtype(), tensor.data + done * size, count);
    done += count;
  }
}

/// A product of two square matrices, and the memory that it takes.
struct SquareProduct {
  SquareProduct(DType type, std::int64_t side, const kernels::CpuDevice& device)
      : square(type, {side, side}),
        scratch_bytes(kernels::workspace_bytes(kernels::find_operation("linear"),
                                               std::vector{square, square}, std::vector{square}, {},
                                               device.capabilities())) {}
  [[nodiscard]] std::int64_t bytes() const { return 3 * square.span_bytes() + scratch_bytes; }
  kernels::TensorType square;
  std::int64_t scratch_bytes;
};

/// Returns the largest side of which all products fit; 0: of none.
std::int64_t side_within(std::int64_t bytes, int threads, DType type) {
  const kernels::CpuDevice device(threads);
  const auto* const side = std::ranges::find_if(kSides, [&](std::int64_t tried) {
    return SquareProduct(DType::f32, tried, device).bytes() <= bytes &&
           SquareProduct(type, tried, device).bytes() <= bytes;
  });
  return side == kSides.end() ? 0 : *side;
}

}  // namespace

double product_rate(int threads, DType type, std::int64_t side) {
  kernels::CpuDevice device(threads);
  kernels::CpuStream stream(device);
  const SquareProduct product(type, side, device);
  const std::int64_t bytes = product.square.span_bytes();
  const AlignedMemory memory(product.bytes());
  std::byte* const base = memory.bytes().data();
  const auto tensor = [&](int place) {
    return kernels::Tensor{product.square, base + place * bytes};
  };
  const std::vector<kernels::Tensor> inputs{tensor(0), tensor(1)}, outputs{tensor(2)};
  fill(inputs[0], 1);
  fill(inputs[1], 2);
  const kernels::Kernel kernel = kernels::cpu_kernels().find("linear");
  const kernels::Attributes none;
  const auto scratch_bytes = static_cast<std::size_t>(product.scratch_bytes);
  const auto edge = static_cast<double>(side);
  double best = 0;
  for (int pass = 0; pass < kRatePasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    kernel(stream, {inputs, outputs, {base + 3 * bytes, scratch_bytes}, none});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * edge * edge * edge / seconds);
  }
  return best;
}

std::int64_t memory_to_measure() {
  const std::int64_t available = available_host_bytes();
  return available > 0 ? available / 4 : 2 * kMostCopiedBytes;
}

std::int64_t measure_cpu(Machine& machine, DType type, std::int64_t most_bytes) {
  const int threads = static_cast<int>(machine.processor.cores.whole());
  const std::int64_t copied_bytes =
      std::min(most_bytes / 2 / kLeastCopiedBytes * kLeastCopiedBytes, kMostCopiedBytes);
  const std::int64_t side = side_within(most_bytes, threads, type);
  if (copied_bytes == 0 || side == 0) return 0;
  machine.device.bytes_per_second = measured(host_copy_rate(threads, copied_bytes));
  machine.device.fp32_flops = measured(product_rate(threads, DType::f32, side));
  if (type != DType::f32) machine.device.bf16_flops = measured(product_rate(threads, type, side));
  return copied_bytes;
}

}  // namespace strata::machine

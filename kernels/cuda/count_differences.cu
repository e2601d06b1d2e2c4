#include "kernels/cuda/count_differences.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace strata::cuda {
namespace {

struct DifferenceArguments {
  const std::uint16_t* a;
  const std::uint16_t* b;
  std::int64_t elements;
  std::int64_t* count;
};

struct CountDifferences {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kMostBlocks = 4096;

  static STRATA_DEVICE void run(const DifferenceArguments& x) {
    const std::int64_t threads = std::int64_t{grid().x} * kThreads;
    std::int64_t found = 0;
    for (std::int64_t i = std::int64_t{block().x} * kThreads + thread(); i < x.elements;
         i += threads)
      found += x.a[i] != x.b[i] ? 1 : 0;
    if (found > 0) atomic_add(x.count, found);
  }
};

}  // namespace

void count_differences(kernels::Stream& stream, const std::uint16_t* a, const std::uint16_t* b,
                       std::int64_t elements, std::int64_t* count) {
  if (elements == 0) return;
  const std::int64_t blocks =
      std::min((elements + CountDifferences::kThreads - 1) / CountDifferences::kThreads,
               CountDifferences::kMostBlocks);
  launch<CountDifferences>(stream, {{static_cast<std::uint32_t>(blocks), 1, 1}, 0},
                           DifferenceArguments{a, b, elements, count});
}

}  // namespace strata::cuda

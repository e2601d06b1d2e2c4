#include "kernels/cuda/count_differences.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/testing/simulated/simulated_stream.h"

namespace strata::cuda {
namespace {

TEST(CountDifferences, AddsHowManyPlacesDiffer) {
  // There are more elements than threads in the largest grid, so some threads look at two.
  constexpr std::int64_t kElements = 4096 * 256 + 1000;
  const std::vector<std::uint16_t> a(kElements, 7);
  std::vector<std::uint16_t> b = a;
  SimulatedStream stream(ThreadOrder::shuffled);
  std::int64_t count = 0;
  count_differences(stream, a.data(), b.data(), kElements, &count);
  EXPECT_EQ(count, 0);
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{300}, kElements - 1})
    b[static_cast<std::size_t>(at)] = 8;
  count_differences(stream, a.data(), b.data(), kElements, &count);
  EXPECT_EQ(count, 3);
  count_differences(stream, a.data(), b.data(), 300, &count);
  EXPECT_EQ(count, 4);
  count_differences(stream, a.data(), b.data(), 0, &count);
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace strata::cuda

#include "offload/nvme/memory_slices.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/error.h"
#include "offload/nvme/stripes.h"

namespace strata::offload {
namespace {

TEST(MemorySlices, CutsRangesAndFindsWhatLiesInOneSlice) {
  std::vector<std::byte> memory(100);
  std::byte* base = memory.data();
  const std::vector<std::span<std::byte>> ranges{{base + 60, 30}, {base, 25}, {}};
  const MemorySlices slices(ranges, 10);
  ASSERT_EQ(slices.slices().size(), 6u);
  EXPECT_EQ(slices.find(base, 10), 0);
  EXPECT_EQ(slices.find(base + 5, 6), -1);  // crosses the border of two slices
  EXPECT_EQ(slices.find(base + 20, 5), 2);
  EXPECT_EQ(slices.find(base + 20, 6), -1);
  EXPECT_EQ(slices.find(base + 30, 1), -1);
  EXPECT_EQ(slices.find(base + 89, 1), 5);
  EXPECT_EQ(slices.until_border(base + 5), 5);
  EXPECT_EQ(slices.until_border(base + 10), 10);
  EXPECT_EQ(slices.until_border(base + 30), 30);
  EXPECT_EQ(slices.until_border(base + 90), std::numeric_limits<std::int64_t>::max());
}

TEST(MemorySlices, RefusesRangesThatOverlap) {
  std::vector<std::byte> memory(100);
  const std::vector<std::span<std::byte>> ranges{{memory.data(), 30}, {memory.data() + 29, 5}};
  EXPECT_THROW(MemorySlices{ranges}, InvalidArgument);
}

TEST(Stripes, EveryByteHasOnePlaceAndSharesAddUp) {
  for (const int devices : {1, 2, 3})
    for (const std::int64_t total : {0, 1, 4, 5, 12, 13, 29}) {
      const Stripes stripes{4, devices};
      std::vector<std::vector<int>> uses(static_cast<std::size_t>(devices));
      for (int d = 0; d < devices; ++d)
        uses[static_cast<std::size_t>(d)].resize(
            static_cast<std::size_t>(stripes.device_bytes(d, total)));
      for (std::int64_t at = 0; at < total; ++at)
        ++uses[static_cast<std::size_t>(stripes.device(at))].at(
            static_cast<std::size_t>(stripes.device_offset(at)));
      for (const auto& device : uses)
        for (const int count : device) EXPECT_EQ(count, 1);
    }
}

}  // namespace
}  // namespace strata::offload

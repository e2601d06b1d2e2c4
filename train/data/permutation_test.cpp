#include "train/data/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata::train {
namespace {

TEST(Permutation, IsABijectionForEverySmallSize) {
  for (std::int64_t size = 1; size <= 300; ++size) {
    const Permutation order(size, 42, static_cast<std::uint64_t>(size));
    std::vector<bool> seen(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t j = order(i);
      ASSERT_TRUE(j >= 0 && j < size) << size;
      ASSERT_FALSE(seen[static_cast<std::size_t>(j)]) << size;
      seen[static_cast<std::size_t>(j)] = true;
    }
  }
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  constexpr int kSize = 10;
  constexpr int kSeeds = 10000;
  int counts[kSize][kSize] = {};
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Permutation order(kSize, static_cast<std::uint64_t>(seed), 0);
    for (int i = 0; i < kSize; ++i) ++counts[i][order(i)];
  }
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, kSeeds / kSize, 180);  // six standard deviations
}

TEST(Permutation, NeighboursDoNotStayTogether) {
  const Permutation order(100000, 1, 2);
  int close = 0;
  for (int i = 0; i + 1 < 100000; ++i) close += std::abs(order(i + 1) - order(i)) < 1000 ? 1 : 0;
  EXPECT_NEAR(close, 1990, 300);  // two percent of independent pairs are that close
}

TEST(Permutation, SeedsAndStreamsDiffer) {
  const Permutation a(1000, 1, 1);
  const Permutation b(1000, 2, 1);
  const Permutation c(1000, 1, 2);
  int same_ab = 0;
  int same_ac = 0;
  for (int i = 0; i < 1000; ++i) {
    same_ab += a(i) == b(i) ? 1 : 0;
    same_ac += a(i) == c(i) ? 1 : 0;
  }
  EXPECT_LT(same_ab, 12);
  EXPECT_LT(same_ac, 12);
}

/// The order is part of a run's result, so it must not change with a release.
TEST(Permutation, NeverChanges) {
  const Permutation order(1000, 7, 3);
  const std::vector<std::int64_t> expected = {66, 174, 332, 89, 973, 587, 328, 886};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(order(static_cast<std::int64_t>(i)), expected[i]);
}

TEST(Permutation, HugeSizesWork) {
  const std::int64_t size = std::int64_t{1} << 62;
  const Permutation order(size, 1, 1);
  EXPECT_GE(order(size - 1), 0);
  EXPECT_LT(order(size - 1), size);
}

}  // namespace
}  // namespace strata::train

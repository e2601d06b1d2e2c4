#include "runtime/schedule/place_lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "runtime/testing/expect_apart.h"

namespace strata::runtime {
namespace {

/// Makes `count` buffers of a step of `positions` instructions: long lifetimes like those of
/// activations, short ones like those of scratch, and sizes that span three orders of magnitude.
std::vector<Lifetime> random_lifetimes(std::uint64_t seed, int count, int positions) {
  std::mt19937_64 random(seed);
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % static_cast<std::uint64_t>(positions));
    const std::uint64_t longest = random() % 3 == 0 ? 3 : 40;
    const int length = static_cast<int>(random() % longest);
    const std::uint64_t most_bytes = std::uint64_t{64} << random() % 11;
    const auto bytes = static_cast<std::int64_t>(random() % most_bytes);
    lifetimes.push_back({bytes, first, std::min(first + length + 1, positions)});
  }
  return lifetimes;
}

TEST(PlaceLifetimes, NeverPutsTwoLiveBuffersOnOneByte) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Lifetime> lifetimes = random_lifetimes(seed, 60, 50);
    const std::int64_t size = place_lifetimes(lifetimes, kAlignment);
    expect_apart(lifetimes, size);
    EXPECT_GE(size, largest_held(lifetimes, kAlignment));
  }
}

TEST(PlaceLifetimes, StaysNearTheBoundForRandomBuffers) {
  double sum = 0;
  constexpr int kSeeds = 100;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::vector<Lifetime> lifetimes = random_lifetimes(seed, 100, 80);
    sum += static_cast<double>(place_lifetimes(lifetimes, kAlignment)) /
           static_cast<double>(largest_held(lifetimes, kAlignment));
  }
  EXPECT_LE(sum / kSeeds, 1.03);
}

TEST(PlaceLifetimes, FindsPlacesForFewAmongMany) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Lifetime> lifetimes = random_lifetimes(seed, 100, 80);
    const std::int64_t size = place_lifetimes(lifetimes, kAlignment);
    for (std::size_t i = 0; i < lifetimes.size(); ++i) lifetimes[i].is_placed = i % 10 != 0;
    const std::vector<Lifetime> before = lifetimes;
    expect_apart(lifetimes, place_lifetimes(lifetimes, kAlignment, size, PlaceSearch::once));
    for (std::size_t i = 0; i < lifetimes.size(); ++i)
      EXPECT_TRUE(!lifetimes[i].is_placed || lifetimes[i] == before[i]) << i;
  }
}

TEST(PlaceLifetimes, GivesTheSameOffsetsEveryTime) {
  std::vector<Lifetime> a = random_lifetimes(7, 100, 80), b = a;
  EXPECT_EQ(place_lifetimes(a, kAlignment), place_lifetimes(b, kAlignment));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].offset_bytes, b[i].offset_bytes);
}

TEST(PlaceLifetimes, PlacesNestedLifetimesWithoutLoss) {
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 20; ++i) lifetimes.push_back({1000 + 64 * i, i, 61 - i});
  EXPECT_EQ(place_lifetimes(lifetimes, kAlignment), largest_held(lifetimes, kAlignment));
}

TEST(PlaceLifetimes, ReusesTheStorageOfTheDead) {
  std::vector<Lifetime> lifetimes{{100, 0, 2}, {100, 2, 4}, {100, 4, 5}};
  EXPECT_EQ(place_lifetimes(lifetimes, kAlignment), 128);
}

TEST(PlaceLifetimes, TakesNoBuffersAndEmptyOnes) {
  std::vector<Lifetime> none;
  EXPECT_EQ(place_lifetimes(none, kAlignment), 0);
  std::vector<Lifetime> empty{{0, 0, 4}};
  EXPECT_EQ(place_lifetimes(empty, kAlignment), 0);
}

/// Pieces of state come and go all the time beside activations of another size: placed by size or
/// by duration, they lie scattered. The effort must not end before other orders had a turn.
TEST(PlaceLifetimes, GivesEachKindOfOrderATurn) {
  std::mt19937_64 random(3);
  const auto below = [&](std::uint64_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  std::vector<Lifetime> lifetimes;
  for (int k = 0; k < 8000; ++k) {
    const std::int64_t begin = 10 * k + below(7);
    lifetimes.push_back({1000, begin, begin + 2000 + below(1000)});
    if (k % 25 == 0) lifetimes.push_back({8041, begin, begin + 500 + below(6000)});
  }
  EXPECT_LE(place_lifetimes(lifetimes, 1), largest_held(lifetimes, 1) * 104 / 100);
}

TEST(PlaceLifetimes, LeavesWhatIsPlaced) {
  std::vector<Lifetime> lifetimes{{100, 0, 4, 256, true}, {300, 0, 2}, {200, 1, 4}, {64, 4, 5}};
  const std::int64_t size = place_lifetimes(lifetimes, kAlignment);
  EXPECT_EQ(lifetimes[0].offset_bytes, 256);
  expect_apart(lifetimes, size);
  EXPECT_EQ(size, 256 + 128 + 320);
}

TEST(PlaceLifetimes, EndsWhereItIsEnough) {
  std::vector<Lifetime> lifetimes = random_lifetimes(11, 100, 80), again = lifetimes;
  const std::int64_t first = place_lifetimes(lifetimes, kAlignment, 1 << 30);
  const std::int64_t least = place_lifetimes(again, kAlignment);
  EXPECT_LT(least, first);
  EXPECT_EQ(place_lifetimes(again, kAlignment, least), least);
}

TEST(PlaceLifetimes, FindsTighterPlacesThoroughly) {
  std::int64_t quick = 0, thorough = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Lifetime> lifetimes = random_lifetimes(seed, 400, 100);
    quick += place_lifetimes(lifetimes, kAlignment);
    const std::int64_t size = place_lifetimes(lifetimes, kAlignment, 0, PlaceSearch::thorough);
    expect_apart(lifetimes, size);
    thorough += size;
  }
  EXPECT_LT(thorough, quick);
}

TEST(LargestHeld, CountsAlignedBytesAndEndsBeforeBegins) {
  EXPECT_EQ(largest_held({{1, 0, 1}, {1, 1, 2}}, kAlignment), 64);
  EXPECT_EQ(largest_held({{1, 0, 2}, {65, 1, 2}}, kAlignment), 64 + 128);
  EXPECT_EQ(largest_held({}, kAlignment), 0);
}

}  // namespace
}  // namespace strata::runtime

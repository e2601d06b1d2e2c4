#include "runtime/schedule/place_by_ejection.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/testing/expect_apart.h"

namespace strata::runtime {
namespace {

/// Makes checkpoints of layers, freed in the order of the backward pass, which makes gradients that
/// are held until the link has taken them: nested lifetimes, and ones of another size that move
/// through the arena.
std::vector<Lifetime> checkpointed_step() {
  constexpr int kLayers = 40;
  std::mt19937_64 random(2);
  const auto below = [&](std::uint64_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  std::vector<Lifetime> lifetimes;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::int64_t backward = 20 * (2 * kLayers - layer);
    lifetimes.push_back({33'000, 20 * layer, backward + 20});
    std::int64_t begin = backward;
    for (const std::int64_t bytes : {404'000, 404'000, 180'000, 180'000}) {
      lifetimes.push_back({bytes, begin, begin + 3 + below(3)});
      begin += 2;
    }
    lifetimes.push_back({809'000, backward + 10, backward + 30 + below(12)});
  }
  return lifetimes;
}

TEST(PlaceByEjection, ComesNearWhatIsHeldWhereOrdersDoNot) {
  std::vector<Lifetime> lifetimes = checkpointed_step(), again = lifetimes;
  const std::int64_t held = largest_held(lifetimes, kAlignment);
  const std::int64_t before = place_lifetimes(lifetimes, kAlignment);
  EXPECT_GT(before, held * 104 / 100);
  const std::int64_t after = place_by_ejection(lifetimes, kAlignment, before, 0);
  EXPECT_LE(after, held * 101 / 100);
  expect_apart(lifetimes, after);
  place_lifetimes(again, kAlignment);
  EXPECT_EQ(place_by_ejection(again, kAlignment, before, 0), after);
  EXPECT_EQ(again, lifetimes);
}

TEST(PlaceByEjection, EndsWhereItIsEnough) {
  std::vector<Lifetime> lifetimes = checkpointed_step();
  const std::int64_t before = place_lifetimes(lifetimes, kAlignment);
  const std::vector<Lifetime> as_it_was = lifetimes;
  EXPECT_EQ(place_by_ejection(lifetimes, kAlignment, before, before), before);
  EXPECT_EQ(lifetimes, as_it_was);
}

TEST(PlaceByEjection, LeavesWhatIsPlacedAndAFailureLeavesAll) {
  // Only the place of the first one keeps the arena from being as small as what is held.
  std::vector<Lifetime> lifetimes{
      {64, 0, 4, 192, true}, {128, 0, 2, 0}, {64, 1, 4, 128}, {64, 4, 5, 0}};
  const std::vector<Lifetime> as_it_was = lifetimes;
  EXPECT_EQ(place_by_ejection(lifetimes, kAlignment, 256, 0), 256);
  EXPECT_EQ(lifetimes, as_it_was);
  lifetimes = {{64, 0, 4, 64, true}, {128, 0, 2, 128}, {64, 2, 4, 0}};
  const std::int64_t size = place_by_ejection(lifetimes, kAlignment, 320, 0);
  EXPECT_EQ(lifetimes[0].offset_bytes, 64);
  EXPECT_LE(size, 320);
  expect_apart(lifetimes, size);
}

TEST(PlaceByEjection, TakesNoBuffers) {
  std::vector<Lifetime> none;
  EXPECT_EQ(place_by_ejection(none, kAlignment, 0, 0), 0);
}

}  // namespace
}  // namespace strata::runtime

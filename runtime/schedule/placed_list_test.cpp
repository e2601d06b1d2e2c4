#include "runtime/schedule/placed_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace strata::runtime {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

struct Placed {
  Range place;
  HeldTimes times;
};

/// Joins ranges that touch or overlap. They come by their bottoms.
std::vector<Range> joined(const std::vector<Range>& ranges) {
  std::vector<Range> all;
  for (const Range& range : ranges)
    if (!all.empty() && range.first <= all.back().second)
      all.back().second = std::max(all.back().second, range.second);
    else
      all.push_back(range);
  return all;
}

std::vector<Range> held_among(std::vector<Placed> all, const HeldTimes& wanted) {
  std::vector<Range> held;
  for (const Placed& placed : all)
    if (placed.times.begin < wanted.end && placed.times.end > wanted.begin)
      held.push_back(placed.place);
  std::sort(held.begin(), held.end());
  return joined(held);
}

std::vector<Range> held_in(PlacedList& list, const HeldTimes& wanted) {
  std::vector<Range> held;
  list.for_each_held(wanted, [&](std::int64_t bottom, std::int64_t top) {
    held.emplace_back(bottom, top);
    return false;
  });
  EXPECT_TRUE(std::is_sorted(held.begin(), held.end()));
  return joined(held);
}

HeldTimes random_times(std::mt19937_64& random) {
  const auto begin = static_cast<std::int32_t>(random() % 100);
  return {begin, begin + 1 + static_cast<std::int32_t>(random() % 30)};
}

/// Few places, so that many are the same, touch or overlap, beside some that are far from others.
TEST(PlacedList, ShowsTheBytesThatAreHeld) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PlacedList list;
    std::vector<Placed> all;
    for (int i = 0; i < 400; ++i) {
      const auto slot = static_cast<std::int64_t>(random() % 60);
      const std::int64_t bottom = slot * (slot % 7 == 0 ? 40 : 16);
      const auto bytes = static_cast<std::int64_t>(16 * (1 + random() % 3 / 2 * (random() % 5)));
      all.push_back({{bottom, bottom + bytes}, random_times(random)});
      list.add(all.back().times, bottom, bytes);
      if (random() % 4 != 0) continue;
      const HeldTimes wanted = random_times(random);
      EXPECT_EQ(held_in(list, wanted), held_among(all, wanted));
    }
    EXPECT_EQ(list.size(), 400);
  }
}

TEST(PlacedList, EndsWhenAsked) {
  PlacedList list;
  for (int i = 0; i < 200; ++i) list.add({0, 1}, 32 * i, 16);
  int met = 0;
  list.for_each_held({0, 1}, [&](std::int64_t, std::int64_t) { return ++met == 3; });
  EXPECT_EQ(met, 3);
}

}  // namespace
}  // namespace strata::runtime

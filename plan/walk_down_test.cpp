#include "plan/walk_down.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata::plan {
namespace {

/// Amounts that are tried from `now` on, where those of at least `least` are taken.
struct Walk {
  std::int64_t now = 10'000;
  std::int64_t least = 0;
  std::vector<std::int64_t> tried;

  bool go(int most_tries = 100) {
    const auto is_taken = [&](std::int64_t amount) {
      tried.push_back(amount);
      if (amount < least) return false;
      now = amount;
      return true;
    };
    return walk_down([&] { return now; }, is_taken, most_tries);
  }
};

TEST(WalkDown, EndsWhereTheNearestBelowIsNotTaken) {
  Walk walk{.least = 9'990};
  EXPECT_TRUE(walk.go());
  EXPECT_EQ(walk.tried, std::vector<std::int64_t>{9'900});
  EXPECT_EQ(walk.now, 10'000);
}

TEST(WalkDown, GoesOnTwiceAsFarAfterEachThatIsTakenAndNearAfterOneThatIsNot) {
  Walk walk{.least = 9'300};
  EXPECT_TRUE(walk.go());
  EXPECT_EQ(walk.tried, (std::vector<std::int64_t>{9'900, 9'702, 9'319, 8'599, 9'225}));
  EXPECT_EQ(walk.now, 9'319);
}

TEST(WalkDown, FindsTheLeastToAHundredth) {
  for (std::int64_t least = 100; least <= 10'000; least += 100) {
    Walk walk{.least = least};
    EXPECT_TRUE(walk.go());
    EXPECT_LT(scaled(walk.now, kNextBelow), least);
    EXPECT_LT(walk.tried.size(), 40U) << least;
  }
}

TEST(WalkDown, SaysThatItHadTooFewTries) {
  Walk walk{.least = 5'000};
  EXPECT_FALSE(walk.go(3));
  EXPECT_EQ(walk.tried.size(), 3U);
}

TEST(WalkDown, StartsFromWhatWasTakenWhichMayBeLessThanTheAmountTried) {
  std::int64_t now = 1000;
  std::vector<std::int64_t> tried;
  const auto is_taken = [&](std::int64_t amount) {
    tried.push_back(amount);
    if (amount < 500) return false;
    now = amount / 100 * 100;  // as schedules need less than they may
    return true;
  };
  EXPECT_TRUE(walk_down([&] { return now; }, is_taken));
  EXPECT_EQ(tried.front(), 990);
  EXPECT_EQ(tried[1], 882);
  EXPECT_EQ(now, 500);
}

}  // namespace
}  // namespace strata::plan

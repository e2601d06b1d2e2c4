#include "launcher/control/straggler_watch.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using std::chrono::seconds;

class StragglerWatchTest : public testing::Test {
 protected:
  /// Lets ranks make `steps` steps a second for so long, with this many ms of work in each, and
  /// looks once a second. Returns the last straggler that was told of.
  std::optional<Straggler> run(seconds time, int steps, const std::vector<int>& work_ms) {
    ranks_.resize(work_ms.size());
    std::optional<Straggler> last;
    for (; time > seconds(0); time -= seconds(1)) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        ranks_[i].rank = static_cast<int>(i);
        ranks_[i].worked_steps += steps;
        ranks_[i].work_ns += std::int64_t{1'000'000} * steps * work_ms[i];
      }
      now_ += seconds(1);
      if (const auto told = watch_.look(now_, ranks_)) {
        last = told;
        ++told_;
      }
    }
    return last;
  }

  StragglerWatch watch_;
  StragglerWatch::TimePoint now_{};
  std::vector<RankState> ranks_;
  int told_ = 0;
};

// Fault 9.
TEST_F(StragglerWatchTest, ARankForWhichOthersWaitIsNamedOnce) {
  EXPECT_FALSE(run(seconds(10), 4, {10, 10, 16, 9}));
  const auto found = run(seconds(30), 4, {10, 10, 16, 9}).value();
  EXPECT_EQ(found.rank, 2);
  EXPECT_NEAR(found.seconds, 0.016, 1e-6);
  EXPECT_NEAR(found.usual, 0.010, 1e-6);
  EXPECT_EQ(told_, 1);
}

TEST_F(StragglerWatchTest, NamedAgainAfterItWasNone) {
  EXPECT_TRUE(run(seconds(12), 4, {10, 16}));
  EXPECT_FALSE(run(seconds(20), 4, {10, 10}));
  EXPECT_TRUE(run(seconds(20), 4, {10, 16}));
  EXPECT_EQ(told_, 2);
}

TEST_F(StragglerWatchTest, OfTwoRanksTheFasterIsUsual) {
  EXPECT_EQ(run(seconds(12), 4, {20, 10}).value().rank, 0);
}

// Fault 9.
TEST_F(StragglerWatchTest, ItTakesTwentySteps) {
  EXPECT_FALSE(run(seconds(19), 1, {10, 16}));
  EXPECT_TRUE(run(seconds(2), 1, {10, 16}));
}

// Fault 9.
TEST_F(StragglerWatchTest, RanksOfWhichNothingIsKnownAreLeftOut) {
  ranks_.resize(3);
  for (int second = 0; second < 30; ++second) {
    for (int i : {0, 2}) {
      ranks_[static_cast<std::size_t>(i)].rank = i;
      ranks_[static_cast<std::size_t>(i)].worked_steps += 4;
      ranks_[static_cast<std::size_t>(i)].work_ns += i == 0 ? 40'000'000 : 80'000'000;
    }
    now_ += seconds(1);
    const auto told = watch_.look(now_, ranks_);
    EXPECT_TRUE(!told || told->rank == 2);
    told_ += told ? 1 : 0;
  }
  EXPECT_EQ(told_, 1);
}

TEST_F(StragglerWatchTest, LikeRanksAndUnknownOnesAreNone) {
  EXPECT_FALSE(run(seconds(60), 4, {10, 14, 10}));
  watch_.start_again();
  EXPECT_FALSE(run(seconds(60), 4, {0, 0, 0}));
  watch_.start_again();
  EXPECT_FALSE(run(seconds(60), 4, {10}));
}

}  // namespace
}  // namespace strata::launcher

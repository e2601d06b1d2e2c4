#include "launcher/control/hang_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace strata::launcher {
namespace {

using Seconds = HangWatch::Seconds;
using std::chrono::milliseconds;

/// Two ranks in step 7, each of which may get on.
class HangWatchTest : public testing::Test {
 protected:
  HangWatchTest() {
    for (int rank = 0; rank < 2; ++rank)
      ranks_.push_back({.rank = rank, .phase = Phase::forward, .step = 7, .beats = 1});
    now_ += Seconds(100);
    look_after(Seconds(0));
    for (RankState& rank : ranks_) rank.step = 8;  // later than the first step that was seen
  }
  std::optional<Hang> look_after(milliseconds time) {
    now_ += time;
    return watch_.look(now_, ranks_);
  }
  /// Looks once a second; returns the first hang within so many looks.
  std::optional<Hang> look_for(int seconds, std::vector<int> beating = {}) {
    for (int i = 0; i < seconds; ++i) {
      for (const int rank : beating) ++ranks_[static_cast<std::size_t>(rank)].beats;
      if (auto hang = look_after(Seconds(1))) return hang;
    }
    return {};
  }
  void wait_in(int rank, std::int64_t collective, const std::string& name) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.collective = collective;
    state.collective_name = name;
  }

  HangWatch watch_;
  HangWatch::TimePoint now_{};
  std::vector<RankState> ranks_;
};

TEST_F(HangWatchTest, SaysNothingWhileARankGetsOn) {
  wait_in(0, 12, "gather layer.3");
  EXPECT_FALSE(look_for(600, {1})) << "rank 0 waits for rank 1, which computes";
}

// Fault 8.
TEST_F(HangWatchTest, NamesTheRankThatHasNotComeToTheCollectiveOfOthers) {
  wait_in(0, 12, "gather layer.3");
  wait_in(1, 11, "");
  EXPECT_FALSE(look_for(29));
  const Hang hang = look_for(2).value();
  EXPECT_EQ(hang.kind, Hang::Kind::behind);
  EXPECT_EQ(hang.rank, 1);
  EXPECT_EQ(hang.collective, 12);
  EXPECT_EQ(hang.describe(),
            "rank 1 has not come to collective 12 'gather layer.3', in which rank 0 waits; "
            "nothing got done for 30 s");
}

TEST_F(HangWatchTest, NamesAStoppedRankAsOneWhereTheLimitIsShorterThanItsOwn) {
  watch_ = HangWatch(Seconds(3));
  look_for(1, {0, 1});
  for (RankState& rank : ranks_) ++rank.step;
  wait_in(0, 12, "gather layer.3");
  look_for(1, {0, 1});
  ranks_[1].held = true;
  const Hang hang = look_for(3).value();
  EXPECT_EQ(hang.kind, Hang::Kind::held);
  EXPECT_EQ(hang.rank, 1);
}

// Fault 8.
TEST_F(HangWatchTest, NamesARankThatSkippedACollective) {
  ranks_.push_back(ranks_[1]);
  ranks_[2].rank = 2;
  wait_in(0, 12, "gather layer.3");
  wait_in(1, 12, "gather layer.4");
  wait_in(2, 12, "gather layer.3");
  const Hang hang = look_for(31).value();
  EXPECT_EQ(hang.kind, Hang::Kind::different);
  EXPECT_EQ(hang.rank, 1) << "the others are in one";
  EXPECT_TRUE(hang.describe().starts_with(
      "rank 1 is in collective 12 'gather layer.4', 2 ranks in 'gather layer.3' under the same "
      "number; nothing got done for "))
      << hang.describe();
}

// Fault 8.
TEST_F(HangWatchTest, NamesBothOfTwoRanksInDifferentCollectives) {
  wait_in(0, 12, "gather layer.3");
  wait_in(1, 12, "gather layer.4");
  EXPECT_EQ(look_for(31).value().cause(),
            "is in collective 12 'gather layer.3', rank 1 in 'gather layer.4' under the same "
            "number");
}

// Fault 8.
TEST_F(HangWatchTest, BlamesTheNetworkIfAllAreInOneCollective) {
  wait_in(0, 12, "gather layer.3");
  wait_in(1, 12, "gather layer.3");
  EXPECT_EQ(look_for(31).value().kind, Hang::Kind::in_it);
}

// Fault 8.
TEST_F(HangWatchTest, KnowsASingleRank) {
  ranks_.pop_back();
  ranks_[0].where = "step 9, forward";
  const Hang hang = look_for(31).value();
  EXPECT_EQ(hang.kind, Hang::Kind::alone);
  EXPECT_EQ(hang.describe(), "rank 0 got nothing done for 30 s; it is at step 9, forward");
}

// Fault 7.
TEST_F(HangWatchTest, NamesAStoppedProcessAfterFiveSecondsEvenIfOthersGetOn) {
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(5, {0}));
  const Hang hang = look_for(2, {0}).value();
  EXPECT_EQ(hang.kind, Hang::Kind::held);
  EXPECT_EQ(hang.rank, 1);
  EXPECT_EQ(hang.describe(), "rank 1 has been stopped or frozen for 5 s");
}

// Fault 9.
TEST_F(HangWatchTest, NamesNoProcessThatGetsOnBetweenItsStops) {
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(60, {0, 1}))
      << "cpulimit stops and continues a process many times a second";
  EXPECT_EQ(look_for(7, {0}).value().rank, 1) << "now it is stopped for good";
}

// Fault 9.
TEST_F(HangWatchTest, NamesNoProcessThatRunsBetweenItsStopsWithoutABeat) {
  ranks_[1].held = true;
  for (int second = 0; second < 60; ++second) {
    ranks_[1].switches += 25;
    EXPECT_FALSE(look_for(1, {0})) << "it waits, or is in a long instruction, after " << second;
  }
  EXPECT_EQ(look_for(7, {0}).value().rank, 1) << "now it is stopped for good";
}

// Fault 8.
TEST_F(HangWatchTest, BlamesNoSlowRankForWhatAnotherHasNotDone) {
  wait_in(1, 12, "gather layer.3");
  ranks_[1].held = true;
  std::optional<Hang> hang;
  for (int second = 0; second < 40 && !hang; ++second) {
    ranks_[1].switches += 25;
    hang = look_for(1);
    EXPECT_EQ(hang.has_value(), second >= 29) << second;
  }
  EXPECT_EQ(hang.value().kind, Hang::Kind::behind);
  EXPECT_EQ(hang.value().rank, 0) << "rank 1 waits for it, and is stopped again and again";
}

// Fault 7.
TEST_F(HangWatchTest, NamesAllThatAreHeldAndTheOneHeldLongest) {
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(3));
  ranks_[0].held = true;
  const Hang hang = look_for(4).value();
  EXPECT_EQ(hang.rank, 1);
  EXPECT_EQ(hang.held, (std::vector<int>{0, 1}));
  EXPECT_EQ(hang.describe(), "ranks 0, 1 are stopped or frozen, rank 1 for 5 s");
}

// Fault 7.
TEST_F(HangWatchTest, NamesAStoppedProcessThatHasNotToldAnythingYet) {
  for (RankState& rank : ranks_) rank.beats = 0;
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(5));
  EXPECT_EQ(look_for(2).value().rank, 1) << "nor do programs that are not Strata's";
}

// Fault 7.
TEST_F(HangWatchTest, NamesAStoppedProcessThatIsDone) {
  ranks_[1].phase = Phase::done;
  ranks_[1].held = true;
  ranks_[0].ended = true;
  EXPECT_FALSE(look_for(5));
  EXPECT_EQ(look_for(2).value().rank, 1);
}

// Fault 8.
TEST_F(HangWatchTest, NamesARankThatIsDoneAndDoesNotEnd) {
  ranks_[0].ended = true;
  ranks_[1].phase = Phase::done;
  ranks_[1].where = "step 9, done";
  EXPECT_FALSE(look_for(59));
  const Hang hang = look_for(2).value();
  EXPECT_EQ(hang.kind, Hang::Kind::ending);
  EXPECT_EQ(hang.describe(),
            "rank 1 has ended its work, but its process does not end; nothing got done for 60 s; "
            "it is at step 9, done");
}

// Fault 8.
TEST_F(HangWatchTest, LooksForTheCulpritAmongRanksThatAreNotDone) {
  ranks_[0].phase = Phase::done;
  ranks_[0].collective = ranks_[1].collective = 12;
  const Hang hang = look_for(61).value();
  EXPECT_EQ(hang.rank, 1);
  EXPECT_EQ(hang.kind, Hang::Kind::alone);
}

// Fault 8.
TEST_F(HangWatchTest, NamesARankThatFailedAndDoesNotEnd) {
  ranks_[1].phase = Phase::failed;
  wait_in(0, 12, "gather layer.3");
  ranks_[1].collective = 13;
  EXPECT_EQ(look_for(61).value().rank, 1);
}

// Fault 8.
TEST_F(HangWatchTest, NamesARankThatHasToldNothingWhileOthersWaitForIt) {
  ranks_[1].beats = 0;
  EXPECT_FALSE(look_for(100, {0})) << "the other gets on";
  EXPECT_FALSE(look_for(299));
  const Hang hang = look_for(2).value();
  EXPECT_EQ(hang.kind, Hang::Kind::silent);
  EXPECT_EQ(hang.rank, 1);
}

// Fault 8.
TEST_F(HangWatchTest, WaitsForWhoReadsTheOutputOfRanks) {
  ranks_[0].unread = true;
  EXPECT_FALSE(look_for(600));
  ranks_[1].held = true;
  EXPECT_TRUE(look_for(7)) << "no reader stops a process";
  ranks_[1].held = ranks_[0].unread = false;
  EXPECT_FALSE(look_for(29)) << "the time before does not count";
  EXPECT_TRUE(look_for(3));
}

TEST_F(HangWatchTest, CountsOnlyStopsInOnePiece) {
  for (int i = 0; i < 10; ++i) {
    ranks_[1].held = true;
    EXPECT_FALSE(look_for(4, {0}));
    ranks_[1].held = false;
    EXPECT_FALSE(look_for(1, {0}));
  }
}

// Fault 7.
TEST_F(HangWatchTest, WaitsForDebuggers) {
  ranks_[1].held = ranks_[1].traced = true;
  EXPECT_FALSE(look_for(600));
  ranks_[1].held = ranks_[1].traced = false;
  EXPECT_FALSE(look_for(29)) << "time under a debugger does not count";
  EXPECT_TRUE(look_for(3));
}

TEST_F(HangWatchTest, BeginsAnewAfterAPauseOfMlaunchItself) {
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(4));
  EXPECT_FALSE(look_after(Seconds(3600)));
  EXPECT_FALSE(look_for(4));
  EXPECT_TRUE(look_for(3));
}

// Fault 8.
TEST_F(HangWatchTest, LearnsHowLongPausesAre) {
  for (int pause = 0; pause < 3; ++pause) {
    EXPECT_FALSE(look_for(20));
    EXPECT_FALSE(look_for(1, {0, 1}));
  }
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(5 * 21));
  EXPECT_FALSE(look_for(100));
  EXPECT_TRUE(look_for(6));
}

// Fault 8.
TEST_F(HangWatchTest, ForgetsALongPauseAmongManyShortOnes) {
  EXPECT_FALSE(look_for(28));
  EXPECT_FALSE(look_for(98, {0, 1}));
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(5 * 29)) << "of fewer than 100 pauses the longest";
  EXPECT_FALSE(look_for(2, {0, 1}));
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(30));
}

TEST_F(HangWatchTest, KeepsPausesOfAPhaseApart) {
  for (RankState& rank : ranks_) rank.phase = Phase::saving;
  EXPECT_FALSE(look_for(1, {0, 1}));
  EXPECT_FALSE(look_for(50));
  for (RankState& rank : ranks_) rank.phase = Phase::forward;
  EXPECT_FALSE(look_for(1, {0, 1}));
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(30)) << "it was a long time to save";
  for (RankState& rank : ranks_) rank.phase = Phase::saving;
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(5 * 51));
}

// Fault 8.
TEST_F(HangWatchTest, ForgetsPausesWhenRanksStartAgain) {
  EXPECT_FALSE(look_for(28));
  EXPECT_FALSE(look_for(1, {0, 1}));
  watch_.start_again();
  for (RankState& rank : ranks_) rank.step = 1;
  look_after(Seconds(1));
  for (RankState& rank : ranks_) rank.step = 2;
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(30));
}

TEST_F(HangWatchTest, GivesTimeToStepsThatAreForeseenToBeLong) {
  for (RankState& rank : ranks_) rank.quiet = Seconds(446);  // a device runs all of it
  EXPECT_FALSE(look_for(5 * 446 - 1));
  EXPECT_TRUE(look_for(2));
}

TEST_F(HangWatchTest, GivesTimeToPhasesThatHaveMuchToDo) {
  for (RankState& rank : ranks_) rank.phase = Phase::loading;
  EXPECT_FALSE(look_for(299));
  EXPECT_TRUE(look_for(2));
  for (RankState& rank : ranks_) rank.phase = Phase::evaluate;
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(120));
  ranks_[1].phase = Phase::saving;
  ranks_[0].phase = Phase::forward;
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(120)) << "rank 0 may wait for what rank 1 saves";
}

TEST_F(HangWatchTest, GivesTimeToTheFirstStep) {
  watch_.start_again();
  for (RankState& rank : ranks_) rank.step = 40;
  look_after(Seconds(1));
  EXPECT_EQ(watch_.limit_of(ranks_), Seconds(120));
}

TEST_F(HangWatchTest, PassesOverRanksThatEndedAndProgramsThatTellNothing) {
  for (RankState& rank : ranks_) rank.beats = 0;
  EXPECT_FALSE(look_for(600));
  ranks_[0].beats = 5;
  ranks_[0].ended = true;
  EXPECT_FALSE(look_for(600));
}

TEST_F(HangWatchTest, IsOffWithoutALimit) {
  watch_ = HangWatch(Seconds(0));
  ranks_[1].held = true;
  EXPECT_FALSE(look_for(600));
}

// Fault 8.
/// Steps of 1 ms to 60 s in pieces, pauses of saves and of both cores taken: none is a hang.
TEST(HangWatchSeeds, NoRunThatGetsOnIsAHang) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 draw(seed);
    const double step =
        std::exp(std::uniform_real_distribution(std::log(1e-3), std::log(60.0))(draw));
    const int pieces = std::uniform_int_distribution(1, 200)(draw);
    HangWatch watch;
    HangWatch::TimePoint now{Seconds(1)};
    std::vector<RankState> ranks(3);
    double done = 0, slow_until = 0, saving_until = 0;
    for (int second = 0; second < 1200; ++second) {
      if (draw() % 400 == 0) slow_until = second + 60;
      if (draw() % 300 == 0) saving_until = second + std::uniform_int_distribution(1, 20)(draw);
      const bool saves = second < saving_until;
      if (!saves) done += (second < slow_until ? 0.3 : 1.0) / step;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank] = {.rank = static_cast<int>(rank),
                       .phase = saves ? Phase::saving : Phase::forward,
                       .step = static_cast<std::int64_t>(done),
                       .beats = 1 + static_cast<std::uint64_t>(done * pieces),
                       .collective = static_cast<std::int64_t>(done * 10)};
      }
      const milliseconds late(draw() % 700);
      now += Seconds(1) + late;
      ASSERT_FALSE(watch.look(now, ranks)) << "seed " << seed << ", second " << second;
    }
  }
}

}  // namespace
}  // namespace strata::launcher

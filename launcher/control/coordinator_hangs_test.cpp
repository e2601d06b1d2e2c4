// Ranks that hang, as the coordinator handles them.
#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

// Fault 8.
TEST_F(CoordinatorTest, EndsRanksThatHangAndNamesTheFirstBehind) {
  open({"a", "b"});
  Hang hang{.rank = 1, .for_how_long = seconds(30)};
  tell(RanksHang{hang});
  hang.host = "b";
  EXPECT_EQ(done<Announce>().value().text, "rank 1 on host b got nothing done for 30 s");
  EXPECT_EQ(sent<Collect>("b").value().hang, hang);
  EXPECT_FALSE(sent<Collect>("a")) << "none of its ranks is to blame, or waits";
  EXPECT_EQ(sent<StopAttempt>("b").value().reason, hang.describe());
  tell(AgentSaid{"b", "1", Evidence{0, "it computes", "wait longer"}});
  ended("a", blames_a_peer(40));
  ended("b", killed(1, 57, 40));
  const AttemptReport report = done<TellReport>().value().report;
  EXPECT_EQ(report.hang, hang);
  EXPECT_EQ(report.advice, "wait longer");
  ASSERT_EQ(report.evidence.size(), 1U);
  EXPECT_EQ(report.evidence[0].host, "b");
  EXPECT_EQ(report.evidence[0].text, "it computes");
  EXPECT_TRUE(sent<StartAttempt>("a").value().placement.attempt == 1);
}

// Fault 8.
TEST_F(CoordinatorTest, BlamesNoRankForTheSilenceOfAHost) {
  open_with_silent_b(seconds(2));
  tick_after(seconds(1));
  ASSERT_EQ(run_->hosts()[1].state, kIsSilent);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_TRUE(run_->is_running()) << "its states are old";
  hello("b", "1", 0);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_TRUE(run_->is_running()) << "it has said nothing of its ranks";
  beat("b", 0, true);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_TRUE(run_->is_running()) << "its ranks may just have been killed";
  for (int i = 0; i < 2; ++i) {
    now_ += seconds(1);
    beat("a", 0, true);
    beat("b", 0, true);
  }
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_FALSE(run_->is_running());
}

// Fault 8.
TEST_F(CoordinatorTest, TrustsNoHostByALateWordThatEndsItsSilence) {
  const auto beat_of_b = [this](std::int64_t number) {
    tell(AgentSaid{"b", "1", Heartbeat{.number = number, .newest = 0, .has_ranks = true}});
  };
  const auto is_blamed = [this] {
    tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
    return !run_->is_running();
  };
  open({"a", "b"});
  beat_of_b(10);
  for (const std::int64_t late : {7, 29}) {  // a copy of one that came, and one that was late
    now_ += seconds(2);
    beat("a", 0, true);
    tick_after(seconds(1));
    ASSERT_EQ(run_->hosts()[1].state, kIsSilent);
    beat_of_b(late);
    EXPECT_FALSE(is_blamed()) << late;
    now_ += milliseconds(1);
    beat_of_b(late + 10);
    EXPECT_FALSE(is_blamed()) << "the first word after a pause, of ranks that got nothing done";
    now_ += milliseconds(500);
    beat_of_b(late + 11);
    EXPECT_FALSE(is_blamed()) << "that may be the first, and what came before it late";
    now_ += milliseconds(500);
    beat("a", 0, true);
    beat_of_b(late + 12);
  }
  EXPECT_TRUE(is_blamed());
}

// Fault 8.
TEST_F(CoordinatorTest, BlamesNoRankOnceTheUserHasEndedAll) {
  for (const auto& [signal, is_blamed] :
       {std::pair(SIGINT, false), {SIGQUIT, false}, {SIGTERM, true}}) {
    open({"a", "b"});
    forget();
    tell(RunSignal{signal});
    tell(RanksHang{{.rank = 0}});
    EXPECT_EQ(done<Announce>().has_value(), is_blamed) << "ranks may hang while they save";
  }
}

TEST_F(CoordinatorTest, AsksForWhatHoldsRanksThatWaitToo) {
  open({"a", "b"});
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1, .waiting = {0}}});
  EXPECT_TRUE(sent<Collect>("a"));
  EXPECT_TRUE(sent<Collect>("b"));
}

/// Runs whose attempts end by hangs, one after another.
class AlikeHangsTest : public CoordinatorTest {
 protected:
  /// Lets attempts of a run of two ranks end by these hangs, at one step and each after a newer
  /// checkpoint; returns the run's exit code, 0 if it goes on.
  int code_after(const std::vector<Hang>& hangs) {
    open({"a", "b"});
    forget();
    for (std::size_t attempt = 0; attempt < hangs.size(); ++attempt) {
      tell(RanksHang{hangs[attempt]});
      AttemptFacts facts = killed(0, 57, 40 + static_cast<std::int64_t>(attempt));
      facts.failed.reset();
      ended("a", facts);
      ended("b", facts);
      if (done<EndRun>()) return done<EndRun>()->exit_code;
    }
    return 0;
  }
};

// Fault 8.
TEST_F(AlikeHangsTest, GiveUpARunInWhicheverRankAndForWhateverTime) {
  const Hang hang{.kind = Hang::Kind::behind,
                  .rank = 0,
                  .for_how_long = seconds(30),
                  .collective = 7,
                  .collective_name = "all_reduce",
                  .waiting = {1}};
  Hang of_another = hang;
  of_another.rank = 1;
  of_another.waiting = {0};
  of_another.for_how_long = seconds(33);
  of_another.collective = 3;  // collectives are counted from the start of an attempt
  EXPECT_EQ(code_after({hang, of_another, hang}), 93);
  Hang elsewhere = hang;
  elsewhere.collective_name = "gather";
  EXPECT_EQ(code_after({hang, elsewhere, hang}), 0);
  Hang stopped = hang;
  stopped.kind = Hang::Kind::held;
  EXPECT_EQ(code_after({hang, stopped, hang}), 0);
}

// Fault 8.
TEST_F(CoordinatorTest, StartsNothingAgainThatIsDoneButDoesNotEnd) {
  open({"a"});
  tell(RanksHang{{.kind = Hang::Kind::ending, .rank = 0}});
  AttemptFacts facts = killed(0, 57, 40);
  facts.ranks[0].done = true;
  ended("a", facts);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

}  // namespace
}  // namespace strata::launcher

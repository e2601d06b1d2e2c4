// When a coordinator starts ranks, ends an attempt, starts the next one and ends the run.
#include <signal.h>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

TEST_F(CoordinatorTest, StartsWhenAllHostsAreThere) {
  open({"a", "b"});
  const auto start = sent<StartAttempt>("b").value();
  EXPECT_EQ(start.placement.slots, (std::vector{1, 1}));
  EXPECT_EQ(start.placement.attempt, 0);
  EXPECT_EQ(start.node, 1);
  EXPECT_EQ(sent<StartAttempt>("a").value().node, 0);
}

TEST_F(CoordinatorTest, WaitsForHostsAndGivesUpInTime) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}});
  hello("a");
  EXPECT_FALSE(sent<StartAttempt>("a"));
  EXPECT_EQ(run_->next_deadline(), now_ + seconds(60));
  tick_after(seconds(60));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
  EXPECT_NE(done<Announce>().value().text.find("1 of 2 hosts"), std::string::npos);
}

TEST_F(CoordinatorTest, EndsWellWhenAllRanksHave) {
  open({"a", "b"});
  ended("a", well_done());
  EXPECT_FALSE(done<EndRun>());
  ended("b", well_done());
  EXPECT_EQ(done<EndRun>().value().exit_code, 0);
  EXPECT_TRUE(sent<Dismiss>("a"));
  EXPECT_FALSE(done<TellReport>());
}

// Fault 37.
TEST_F(CoordinatorTest, GivesUpARunThatCannotBeginThreeTimes) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a"},
                                  .restarts = {.most_restarts = 6, .without_commit = true}});
  hello("a");
  AttemptFacts refused = killed(0, -1, -1);
  refused.exit_code = 69;
  refused.ranks[0].ending = Ending{Ending::Kind::exited, 69};
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_FALSE(done<EndRun>()) << attempt;
    ended("a", refused);
  }
  EXPECT_EQ(done<EndRun>().value().exit_code, 93) << "the run has got nowhere, and is not kept out";
}

// Fault 37.
TEST_F(CoordinatorTest, ADiskThatKeepsARunOutIsNoFailureOfTheRun) {
  open({"a"});
  ended("a", killed(0, 57, 40));
  AttemptFacts full = killed(0, -1, 40);
  full.exit_code = 74;
  full.ranks[0].ending = Ending{Ending::Kind::exited, 74};
  ended("a", full);
  ASSERT_FALSE(done<EndRun>()) << "a disk may have been away for a moment";
  ended("a", full);
  EXPECT_EQ(done<EndRun>().value().exit_code, 74);
}

TEST_F(CoordinatorTest, StopsOthersWhenARankFailsAndStartsAgainWhenNoneIsLeft) {
  open({"a", "b"});
  forget();
  tell(AgentSaid{"b", "1", RankFailed{0, 1, "rank 1 was killed", false}});
  EXPECT_EQ(sent<StopAttempt>("a").value().reason, "rank 1 was killed");
  ended("a", blames_a_peer(40));
  EXPECT_FALSE(sent<StartAttempt>("a")) << "b may have ranks";
  ended("b", killed(1, 57, 40));
  const AttemptReport report = done<TellReport>().value().report;
  EXPECT_EQ(report.failed_host, 1);
  EXPECT_TRUE(report.is_started_again);
  EXPECT_EQ(report.committed, 40);
  EXPECT_EQ(report.checkpoint, "out/step");
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 1);
  EXPECT_EQ(sent<StartAttempt>("a").value().last_step, 57);
  EXPECT_NE(done<Announce>().value().text.find("step 40"), std::string::npos);
}

TEST_F(CoordinatorTest, NamesTheFirstFailureThatDoesNotBlameAPeer) {
  open({"a", "b"});
  tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 lost a peer", true}});
  tell(AgentSaid{"b", "1", RankFailed{0, 1, "rank 1 was killed", false}});
  ended("a", blames_a_peer(40));
  ended("b", killed(1, 57, 40));
  EXPECT_EQ(done<TellReport>().value().report.failed_host, 1);
}

TEST_F(CoordinatorTest, FailuresAreAlikeWhicheverRankTellsOfThemFirst) {
  open({"a", "b"});
  for (const std::int64_t committed : {40, 45, 50}) {
    EXPECT_FALSE(done<EndRun>());
    const bool is_a_first = committed == 45;
    const AttemptFacts facts = killed(is_a_first ? 0 : 1, 57, committed);
    ended(is_a_first ? "a" : "b", facts);
    ended(is_a_first ? "b" : "a", well_done());
  }
  EXPECT_EQ(done<EndRun>().value().exit_code, 93);
  EXPECT_EQ(done<KeepEvidence>().value().why, "3 starts failed alike at step 57");
}

TEST_F(CoordinatorTest, AHostThatNeverHeardOfAnAttemptSaysSoBeforeTheNext) {
  open({"a", "b"});
  beat("a", 0, true);
  ended("a", killed(0, 57, 40));
  forget();
  beat("b", -1, false);
  EXPECT_EQ(sent<StopAttempt>("b").value().attempt, 0) << "the word to start may be on its way";
  EXPECT_FALSE(sent<StartAttempt>("b"));
  beat("b", 0, false);
  EXPECT_EQ(sent<StartAttempt>("b").value().placement.attempt, 1);
}

TEST_F(CoordinatorTest, SaysAgainWhatAHostHasNotDone) {
  open({"a"});
  forget();
  beat("a", -1, false);
  EXPECT_TRUE(sent<StartAttempt>("a"));
  forget();
  beat("a", 0, true);
  EXPECT_FALSE(sent<StartAttempt>("a"));
  EXPECT_TRUE(sent<Lease>("a"));
}

TEST_F(CoordinatorTest, EndsARunWhoseRanksStoppedOnRequest) {
  open({"a"});
  tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 exited with code 75", true}});
  AttemptFacts stopped = well_done();
  stopped.exit_code = 75;
  stopped.all_stopped = true;
  stopped.committed = 40;
  ended("a", stopped);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(CoordinatorTest, StartsNothingAfterAWarning) {
  open({"a"});
  tell(RunSignal{SIGUSR1});
  ended("a", blames_a_peer(40));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(CoordinatorTest, EndsWithTheCodeOfARankThatHadDoneItsWork) {
  open({"a"});
  AttemptFacts facts = killed(0, 57, 57);
  facts.exit_code = 74;
  facts.ranks[0].ending = Ending{Ending::Kind::exited, 74};
  facts.ranks[0].done = true;
  ended("a", facts);
  EXPECT_FALSE(done<TellReport>().value().report.is_started_again);
  EXPECT_EQ(done<EndRun>().value().exit_code, 74);
}

TEST_F(CoordinatorTest, AgentsEndWithTheCodeOfTheRun) {
  open({"a", "b"});
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM}});
  AttemptFacts stopped = well_done();
  stopped.exit_code = 75;
  stopped.all_stopped = true;
  ended("a", stopped);
  ended("b", stopped);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
  EXPECT_EQ(sent<Dismiss>("b").value().exit_code, 75);
}

/// Facts of a host whose rank could not begin, since others held the lock of the output folder.
AttemptFacts kept_out() {
  AttemptFacts facts = killed(0, -1, -1);
  facts.exit_code = 69;
  facts.ranks[0].ending = Ending{Ending::Kind::exited, 69};
  facts.ranks[0].error = "out: other ranks still live";
  return facts;
}

TEST_F(CoordinatorTest, StartsThatALockKeptOutWaitLongerAndDoNotEndTheRun) {
  open({"a"});
  ended("a", killed(0, 57, 40));
  EXPECT_EQ(sent<StartAttempt>("a").value().lock_wait, kKilledRanksLock);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    ended("a", kept_out());
    const auto start = sent<StartAttempt>("a").value();
    EXPECT_EQ(start.placement.attempt, attempt + 1);
    EXPECT_EQ(start.lock_wait, kLostHostsLock);
  }
  ended("a", kept_out());
  EXPECT_EQ(done<EndRun>().value().exit_code, 69) << "and not 93: another start may help later";
}

TEST_F(CoordinatorTest, WaitsForTheLockOfALostHostUntilAnAttemptHasHadIt) {
  open({"a", "b"});
  const auto next = [&](AttemptFacts of_a, AttemptFacts of_b) {
    ended("a", std::move(of_a));
    ended("b", std::move(of_b));
    return sent<StartAttempt>("a").value();
  };
  tell(AgentSaid{"b", "1", AttemptEnded{0, killed(1, 57, 40), true}});
  ended("a", blames_a_peer(40));
  EXPECT_EQ(sent<StartAttempt>("a").value().lock_wait, kLostHostsLock) << "b was lost";
  AttemptFacts unbegun = blames_a_peer(-1);
  unbegun.ranks[0].step = -1;
  EXPECT_EQ(next(killed(0, -1, -1), unbegun).lock_wait, kLostHostsLock)
      << "nobody knows whether this attempt has had the lock";
  const auto start = next(killed(0, 70, 60), blames_a_peer(60));
  EXPECT_EQ(start.placement.attempt, 3);
  EXPECT_EQ(start.lock_wait, kKilledRanksLock);
}

TEST_F(CoordinatorTest, AFirstStartThatALockKeepsOutIsAFailureLikeOthers) {
  open({"a"});
  ended("a", kept_out());
  EXPECT_EQ(done<EndRun>().value().exit_code, 69);
}

}  // namespace
}  // namespace strata::launcher

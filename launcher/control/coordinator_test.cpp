#include "launcher/control/coordinator.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

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

TEST_F(CoordinatorTest, KnowsOfTheCheckpointOfAHostThatIsLost) {
  open({"a", "b"}, 1);
  beat("a", 0, true);
  Heartbeat with_checkpoint{.newest = 0, .has_ranks = true};
  with_checkpoint.ranks = {{.rank = 1, .step = 57, .committed = 40, .checkpoint = "out/step-40"}};
  tell(AgentSaid{"b", "1", with_checkpoint});
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  ended("a", blames_a_peer(-1));
  now_ += seconds(4);
  beat("a", 0, false);
  tick_after(seconds(2));
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 1);
  EXPECT_EQ(sent<StartAttempt>("a").value().last_step, 57);
  EXPECT_NE(done<Announce>().value().text.find("saved in out/step-40"), std::string::npos);
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

// Fault 10.
TEST_F(CoordinatorTest, WaitsForTheLeaseOfASilentHost) {
  open({"a", "b"}, 1);
  beat("a", 0, true);
  beat("b", 0, true);
  for (int i = 0; i < 6; ++i) {
    now_ += seconds(1);
    beat("a", 0, true);
  }
  EXPECT_FALSE(sent<StopAttempt>("a"));
  tick_after(milliseconds(500));
  EXPECT_NE(sent<StopAttempt>("a").value().reason.find("host b is lost"), std::string::npos);
  ended("a", blames_a_peer(40));
  EXPECT_FALSE(done<TellReport>().value().report.lost_because.empty());
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.slots, std::vector{1}) << "b is not there";
}

// Fault 10.
TEST_F(CoordinatorTest, SaysThatAHostIsSilentLongBeforeItIsLost) {
  open({"a", "b"});
  beat("a", 0, true);
  beat("b", 0, true);
  now_ += milliseconds(2900);
  beat("a", 0, true);
  forget();
  EXPECT_EQ(run_->next_deadline(), now_ + milliseconds(100));
  tick_after(milliseconds(100));
  EXPECT_EQ(done<Announce>().value().text,
            "host b has been silent for 3.0 s; it counts as lost after 6.5 s");
  EXPECT_EQ(run_->hosts()[1].state, kIsSilent);
  EXPECT_EQ(run_->hosts()[1].ranks, 1);
  forget();
  tick_after(milliseconds(900));
  EXPECT_FALSE(done<Announce>()) << "it was said";
  beat("b", 0, true);
  EXPECT_EQ(done<Announce>().value().text, "host b answers again");
  EXPECT_EQ(run_->hosts()[1].state, kHasRanks);
  EXPECT_TRUE(run_->is_running());
}

TEST_F(CoordinatorTest, SeesAnAgentEndAtOnceButWaitsForItsLease) {
  open({"a", "b"}, 1);
  beat("a", 0, true);
  beat("b", 0, true);
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  EXPECT_TRUE(sent<StopAttempt>("a"));
  ended("a", blames_a_peer(40));
  EXPECT_FALSE(done<TellReport>());
  now_ += seconds(4);
  beat("a", 0, false);
  tick_after(seconds(2));
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 1);
}

// Fault 11.
TEST_F(CoordinatorTest, LosesNothingWhenAConnectionIsMadeAgainInTime) {
  open({"a", "b"});
  beat("b", 0, true);
  tell(ConnectionBroke{"b", "1"});
  now_ += milliseconds(300);
  hello("b", "1", 0);
  tick_after(kReconnect);
  EXPECT_FALSE(sent<StopAttempt>("a"));
  EXPECT_TRUE(run_->is_running());
}

TEST_F(CoordinatorTest, ListensToANewAgentOnlyOnceNothingOfTheOldIsLeft) {
  open({"a", "b"});
  beat("a", 0, true);
  beat("b", 0, true);
  hello("b", "2");
  EXPECT_TRUE(sent<StopAttempt>("a"));
  ended("a", blames_a_peer(40));
  for (int i = 0; i < 6; ++i) {
    now_ += seconds(1);
    beat("a", 0, false);
    beat("b", -1, false, "2");
  }
  EXPECT_FALSE(done<TellReport>()) << "the lease of the old agent lasts";
  tick_after(milliseconds(500));
  EXPECT_EQ(sent<StartAttempt>("b").value().placement.attempt, 1);
}

TEST_F(CoordinatorTest, KeepsASuccessorWhenTheAgentBeforeSaysHelloAgain) {
  open({"a"});
  beat("a", 0, true);
  hello("a", "2");
  hello("a", "1", 0);
  forget();
  ended("a", blames_a_peer(40));
  EXPECT_EQ(done<SendToAgent>().value().agent, "2");
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 1);
}

// Fault 31.
TEST_F(CoordinatorTest, NeverListensAgainToAnAgentThatAnotherHasFollowed) {
  open({"a", "b"}, 2);
  tell(ConnectionBroke{"b", "1"});
  ended("a", blames_a_peer(40));
  ended("b", blames_a_peer(40));
  hello("b", "2");
  EXPECT_EQ(sent<StartAttempt>("b").value().placement.attempt, 1);
  forget();
  hello("b", "1");
  EXPECT_FALSE(sent<StopAttempt>("a")) << "its Hello came late";
  EXPECT_TRUE(sent<Dismiss>("b"));
  EXPECT_EQ(done<SendToAgent>().value().agent, "1");
  EXPECT_TRUE(run_->is_running());
}

TEST_F(CoordinatorTest, AHostThatEndedItsRanksForWantOfAnAnswerWasLost) {
  open({"a", "b"});
  tell(AgentSaid{"b", "1", RankFailed{0, 1, "rank 1 lost a peer", true}});
  AttemptFacts facts = blames_a_peer(40);
  facts.failed.reset();
  tell(AgentSaid{"a", "1", AttemptEnded{0, facts, true}});
  ended("b", blames_a_peer(40));
  const AttemptReport report = done<TellReport>().value().report;
  EXPECT_EQ(report.failed_host, 0);
  EXPECT_NE(report.lost_because, "");
  EXPECT_EQ(run_->attempt(), 1);
}

TEST_F(CoordinatorTest, StartsAgainWhenNoHostHadAnAnswer) {
  open({"a"});
  AttemptFacts facts = blames_a_peer(40);
  facts.failed.reset();
  tell(AgentSaid{"a", "1", AttemptEnded{0, facts, true}});
  EXPECT_EQ(run_->attempt(), 1);
}

TEST_F(CoordinatorTest, AHostThatIsLostAgainAtAnotherStepDoesNotFailAlike) {
  open({"a", "b"});
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_EQ(run_->attempt(), attempt);
    beat("b", attempt, true);
    tell(ConnectionBroke{"b", "1"});
    tick_after(kReconnect);
    AttemptFacts facts = blames_a_peer(40 + attempt);
    facts.ranks[0].step = 50 + attempt;
    ended("a", facts);
    hello("b", "1", attempt);
    beat("b", attempt, false);
  }
  EXPECT_EQ(run_->attempt(), 3);
}

TEST_F(CoordinatorTest, DismissesAnAgentThatAnotherHasFollowed) {
  open({"a", "b"});
  ended("a", blames_a_peer(40));
  forget();
  hello("a", "2");
  ASSERT_EQ(actions_.size(), 1U);
  const auto& send = std::get<SendToAgent>(actions_[0]);
  EXPECT_EQ(send.agent, "1");
  EXPECT_TRUE(std::holds_alternative<Dismiss>(send.message));
}

TEST_F(CoordinatorTest, DismissesASuccessorThatAnotherHasFollowed) {
  open({"a"});
  beat("a", 0, true);
  hello("a", "2");
  forget();
  hello("a", "3");
  EXPECT_TRUE(sent<Dismiss>("a"));
  EXPECT_EQ(done<SendToAgent>().value().agent, "2");
}

TEST_F(CoordinatorTest, LearnsOfACheckpointFromAnAgentThatAnotherHasFollowed) {
  open({"a", "b"});
  beat("a", 0, true);
  hello("a", "2");
  beat("a", 0, false);  // overtakes the facts
  ended("a", blames_a_peer(40));
  ended("b", blames_a_peer(-1));
  EXPECT_EQ(run_->attempt(), 1) << "the run has committed something";
}

TEST_F(CoordinatorTest, SpeaksToTheAgentThatHasRanksAndNotToItsSuccessor) {
  open({"a", "b"});
  beat("b", 0, true);
  hello("b", "2");
  forget();
  beat("b", 0, true);
  EXPECT_EQ(done<SendToAgent>().value().agent, "1");
}

TEST_F(CoordinatorTest, NamesTheFirstFailureThatDoesNotBlameAPeer) {
  open({"a", "b"});
  tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 lost a peer", true}});
  tell(AgentSaid{"b", "1", RankFailed{0, 1, "rank 1 was killed", false}});
  ended("a", blames_a_peer(40));
  ended("b", killed(1, 57, 40));
  EXPECT_EQ(done<TellReport>().value().report.failed_host, 1);
}

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
  open({"a", "b"});
  beat("a", 0, true);
  beat("b", 0, true);
  now_ += seconds(2);
  beat("a", 0, true);
  tick_after(seconds(1));
  ASSERT_EQ(run_->hosts()[1].state, kIsSilent);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_TRUE(run_->is_running()) << "its states are old";
  hello("b", "1", 0);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_TRUE(run_->is_running()) << "it has said nothing of its ranks";
  beat("b", 0, true);
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1}});
  EXPECT_FALSE(run_->is_running());
}

TEST_F(CoordinatorTest, AsksForWhatHoldsRanksThatWaitToo) {
  open({"a", "b"});
  tell(RanksHang{{.kind = Hang::Kind::behind, .rank = 1, .waiting = {0}}});
  EXPECT_TRUE(sent<Collect>("a"));
  EXPECT_TRUE(sent<Collect>("b"));
}

// Fault 8.
TEST_F(CoordinatorTest, GivesUpARunThatHangsAlikeForOtherTimes) {
  open({"a"});
  for (int attempt = 0; attempt < 3; ++attempt) {
    tell(RanksHang{{.rank = 0, .for_how_long = seconds(30 + attempt)}});
    AttemptFacts facts = killed(0, 57, 40 + attempt);
    facts.failed.reset();
    ended("a", facts);
    if (attempt < 2) beat("a", attempt + 1, true);
  }
  EXPECT_EQ(done<EndRun>().value().exit_code, 93);
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

TEST_F(CoordinatorTest, PassesSignalsOnAndStartsNothingAfterThem) {
  open({"a"});
  tell(RunSignal{SIGUSR1});
  EXPECT_EQ(sent<ForwardSignal>("a").value().number, SIGUSR1);
  tell(RunSignal{SIGTERM});
  EXPECT_EQ(sent<ForwardSignal>("a").value().number, SIGTERM);
  ended("a", killed(0, 57, 40));
  EXPECT_EQ(done<EndRun>().value().exit_code, 137);
}

TEST_F(CoordinatorTest, PassesASignalOnAgainToAHostThatDidNotGetIt) {
  open({"a"});
  tell(ConnectionBroke{"a", "1"});
  tell(RunSignal{SIGTERM});
  EXPECT_FALSE(sent<ForwardSignal>("a")) << "nothing reaches it";
  hello("a");
  beat("a", -1, false);
  EXPECT_FALSE(sent<ForwardSignal>("a")) << "it has no ranks yet";
  beat("a", 0, true);
  EXPECT_EQ(sent<ForwardSignal>("a").value(), (ForwardSignal{SIGTERM, 0, 0}));
  forget();
  tell(AgentSaid{"a", "1", Heartbeat{.newest = 0, .has_ranks = true, .signals = 1}});
  EXPECT_FALSE(sent<ForwardSignal>("a"));
}

TEST_F(CoordinatorTest, EndsByASignalBeforeAnyRankHasStarted) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}});
  tell(RunSignal{SIGINT});
  EXPECT_EQ(done<EndRun>().value().exit_code, 130);
}

// Fault 36.
TEST_F(CoordinatorTest, ASignalThatASchedulerSendsToAllHostsIsOneSignal) {
  open({"a", "b", "c"});
  forget();
  const auto signals_to_a = [&] {
    return std::ranges::count_if(actions_, [](const CoordinatorAction& action) {
      const auto* send = std::get_if<SendToAgent>(&action);
      return send && send->host == "a" && std::holds_alternative<ForwardSignal>(send->message);
    });
  };
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM}});
  EXPECT_EQ(sent<ForwardSignal>("a").value(), (ForwardSignal{SIGTERM, 0, 0}));
  tell(RunSignal{SIGTERM});
  tell(AgentSaid{"c", "1", SignalCame{SIGTERM}});
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM}});
  EXPECT_EQ(signals_to_a(), 1) << "the last one was told again";
  EXPECT_TRUE(run_->is_asked_to_end());
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 1}});
  EXPECT_EQ(sent<ForwardSignal>("a").value(), (ForwardSignal{SIGTERM, 0, 1})) << "haste";
  tell(RunSignal{SIGTSTP});
  EXPECT_EQ(signals_to_a(), 2) << "a suspended coordinator would end all ranks";
  tell(AgentSaid{"b", "1", SignalCame{SIGUSR2}});
  now_ += kSameSignal;
  tell(AgentSaid{"c", "1", SignalCame{SIGUSR2}});
  EXPECT_EQ(signals_to_a(), 4) << "days later it is another one";
  tell(RunSignal{SIGINT});
  EXPECT_EQ(sent<ForwardSignal>("b").value(), (ForwardSignal{SIGINT, 0, 4}));
}

TEST_F(CoordinatorTest, AHostThatCannotComeEndsARunThatWaitsForIt) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}});
  hello("a");
  tell(HostCannotCome{"a", "ssh ended"});
  EXPECT_FALSE(done<EndRun>()) << "it has come, and its connection tells how it is";
  tell(HostCannotCome{"b", "ssh: connect to host b port 22: Connection refused"});
  EXPECT_EQ(done<EndRun>().value().exit_code, 69);
  EXPECT_NE(done<Announce>().value().text.find("host b cannot take part: ssh: connect"),
            std::string::npos);
  EXPECT_EQ(sent<Dismiss>("a").value().exit_code, 69);
}

TEST_F(CoordinatorTest, SaysForWhomItWaits) {
  open({"a", "b"});
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  ended("a", blames_a_peer(40));
  tick_after(milliseconds(5000) + kLeaseMargin);
  EXPECT_EQ(done<Announce>().value().text, "waiting up to 60 s for host b");
  forget();
  tick_after(seconds(60));
  EXPECT_NE(done<Announce>().value().text.find("missing: b."), std::string::npos);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(CoordinatorTest, RanksThatALeaseEndedDidNotFail) {
  open({"a", "b"});
  tell(AgentSaid{"b", "1", AttemptEnded{0, killed(1, 57, 40), true}});
  EXPECT_NE(sent<StopAttempt>("a").value().reason.find("host b is lost"), std::string::npos);
  ended("a", blames_a_peer(40));
  EXPECT_FALSE(done<TellReport>().value().report.lost_because.empty());
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

}  // namespace
}  // namespace strata::launcher

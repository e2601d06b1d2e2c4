// Hosts that are silent, lost or late, as their coordinator handles them.
#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

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
  open_with_silent_b(milliseconds(2900));
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
  beat("a", 0, true);
  EXPECT_TRUE(run_->has_old_states()) << "what b says first may be of the time before its pause";
  now_ += milliseconds(500);
  beat("b", 0, true);
  EXPECT_TRUE(run_->has_old_states()) << "the one before may have waited on the way";
  now_ += milliseconds(500);
  beat("b", 0, true);
  EXPECT_FALSE(run_->has_old_states());
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

TEST_F(CoordinatorTest, RanksThatALeaseEndedDidNotFail) {
  open({"a", "b"});
  tell(AgentSaid{"b", "1", AttemptEnded{0, killed(1, 57, 40), true}});
  EXPECT_NE(sent<StopAttempt>("a").value().reason.find("host b is lost"), std::string::npos);
  ended("a", blames_a_peer(40));
  EXPECT_FALSE(done<TellReport>().value().report.lost_because.empty());
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
  EXPECT_EQ(done<Announce>().value().text,
            "waiting up to 60 s for host b; then: starting the ranks again from step 40, saved in "
            "out/step (restart 1 of 3 in an hour)");
  forget();
  tick_after(seconds(60));
  EXPECT_NE(done<Announce>().value().text.find("missing: host b."), std::string::npos);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

}  // namespace
}  // namespace strata::launcher

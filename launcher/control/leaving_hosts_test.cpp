// Hosts that are told to end, spare ones among them, and leave a run that goes on.
#include <signal.h>

#include "launcher/control/testing/elastic_rig.h"

namespace strata::launcher {
namespace {

TEST_F(ElasticTest, ASpareHostThatIsToldToEndLeavesAlone) {
  begin_on_a("1 2");
  come("b");
  EXPECT_NE(done<Announce>().value().text.find("host b is there as a spare"), std::string::npos);
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  EXPECT_TRUE(sent<Dismiss>("b"));
  EXPECT_FALSE(sent<ForwardSignal>("a"));
  EXPECT_FALSE(run_->is_asked_to_end());
  tell(AgentSaid{"a", "1", SignalCame{SIGTERM, 0}});
  EXPECT_TRUE(sent<ForwardSignal>("a")) << "another host may be told to end at once";
}

// Fault 36.
TEST_F(ElasticTest, AHostThatIsToldToEndLeavesOnceAllHaveSaved) {
  open_elastic({"a", "b", "c"});
  say_worlds("a", "1 2 4 6");
  commit("a", 10);
  forget();
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  EXPECT_NE(done<Announce>().value().text.find("goes on as 4 ranks on the other hosts"),
            std::string::npos);
  for (const char* host : {"a", "b", "c"})
    EXPECT_EQ(sent<ForwardSignal>(host).value().number, SIGUSR1) << host;
  EXPECT_FALSE(sent<Dismiss>("b"));
  EXPECT_FALSE(run_->is_asked_to_end());
  EXPECT_EQ(run_->hosts()[1].state, kIsLeaving);
  ended("a", stopped(2));
  ended("b", stopped(2));
  forget();
  ended("c", stopped(2));
  EXPECT_EQ(sent<Dismiss>("b").value().exit_code, 75);
  EXPECT_FALSE(done<TellReport>());
  EXPECT_EQ(run_->restarts_within(now_), 0) << "this is no failure";
  EXPECT_EQ(run_->restarts(), 0);
  EXPECT_EQ(run_->regroupings(), 1);
  EXPECT_FALSE(sent<StartAttempt>("b"));
  EXPECT_EQ(started("c"), (std::vector{2, 2}));
  come("b");
  EXPECT_TRUE(sent<Dismiss>("b")) << "the same agent has been told to end";
  come("b", "2");
  EXPECT_NE(done<Announce>().value().text.find("6 ranks instead of 4"), std::string::npos);
}

// Fault 36.
TEST_F(ElasticTest, AHostThatIsToldTwiceLeavesWithoutWaitingForASave) {
  open_elastic({"a", "b", "c"});
  say_worlds("a", "1 2 4 6");
  commit("a", 10);
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  EXPECT_FALSE(sent<StopAttempt>("a")) << "the same word came twice";
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 1}});
  for (const char* host : {"a", "b", "c"}) EXPECT_TRUE(sent<StopAttempt>(host)) << host;
  EXPECT_FALSE(run_->is_asked_to_end());
  AttemptFacts ended_at_once = killed(0, 12, 10);
  ended_at_once.failed.reset();
  ended_at_once.exit_code = 75;
  ended_at_once.ranks.resize(2);
  for (const char* host : {"a", "b"}) ended(host, ended_at_once);
  forget();
  AttemptFacts blaming = ended_at_once;
  blaming.failed = AttemptFacts::Failed{4, "", ""};
  ended("c", blaming);
  EXPECT_EQ(sent<Dismiss>("b").value().exit_code, 75);
  EXPECT_FALSE(done<TellReport>());
  EXPECT_EQ(run_->restarts(), 0) << "this is no failure";
  EXPECT_EQ(started("c"), (std::vector{2, 2}));
}

// Fault 36.
TEST_F(ElasticTest, HostsLeaveUntilTooFewAreLeft) {
  open_elastic({"a", "b", "c"});
  say_worlds("a", "1 2 4 6");
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  forget();
  tell(AgentSaid{"c", "1", SignalCame{SIGTERM, 0}});
  EXPECT_FALSE(sent<ForwardSignal>("a")) << "the ranks save already";
  EXPECT_FALSE(run_->is_asked_to_end());
  tell(AgentSaid{"a", "1", SignalCame{SIGTERM, 0}});
  EXPECT_FALSE(sent<ForwardSignal>("a"));
  for (const char* host : {"a", "b", "c"}) ended(host, stopped(2));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(ElasticTest, AHostLeavesNoRunWhoseRanksDoNotStopAtASignal) {
  open_elastic({"a", "b"});
  pass(seconds(15), {"a", "b"});
  forget();
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  EXPECT_EQ(sent<ForwardSignal>("a").value().number, SIGTERM);
  EXPECT_TRUE(run_->is_asked_to_end());
}

TEST_F(ElasticTest, AHostLeavesWhileTheRunWaits) {
  open_elastic({"a", "b"});
  forget();
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM, 0}});
  EXPECT_TRUE(sent<Dismiss>("b"));
  EXPECT_FALSE(done<EndRun>());
  pass(seconds(15), {"a"});
  EXPECT_EQ(started("a"), std::vector{2});
}

}  // namespace
}  // namespace strata::launcher

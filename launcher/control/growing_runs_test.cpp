// Runs that stop at a checkpoint to go on with more hosts.
#include <signal.h>

#include "launcher/control/testing/elastic_rig.h"

namespace strata::launcher {
namespace {

// Fault 10.
TEST_F(ElasticTest, AHostThatComesTakesPartAfterTheNextCheckpoint) {
  begin_on_a("1 2 3 4");
  commit("a", 5);
  forget();
  come("b");
  EXPECT_NE(done<Announce>().value().text.find("4 ranks instead of 2"), std::string::npos);
  EXPECT_FALSE(sent<ForwardSignal>("a"));
  commit("a", 10);
  EXPECT_EQ(sent<ForwardSignal>("a").value().number, SIGUSR1);
  forget();
  beat("b", -1, false);
  ended("a", stopped(2));
  EXPECT_FALSE(done<TellReport>());
  EXPECT_FALSE(done<EndRun>());
  EXPECT_EQ(run_->restarts_within(now_), 0) << "this is no failure";
  EXPECT_EQ(started("b"), (std::vector{2, 2}));
}

TEST_F(ElasticTest, AHostThatMissesTheWordStopsWithTheOthers) {
  open_elastic({"a", "b"});
  pass(seconds(15), {"a", "b"});
  say_worlds("a", "1 2 3 4 6");
  come("c");
  commit("a", 10);
  ASSERT_EQ(sent<ForwardSignal>("b").value().number, SIGUSR1);
  tell(AgentSaid{"b", "1", RankFailed{0, 2, "rank 2 exited with code 75", true}});
  beat("c", -1, false);
  ended("a", stopped(2));
  forget();
  ended("b", stopped(2));
  EXPECT_FALSE(done<EndRun>());
  EXPECT_FALSE(done<TellReport>());
  EXPECT_EQ(started("c"), (std::vector{2, 2, 2}));
}

TEST_F(ElasticTest, AHostThatWouldMakeNoLargerWorldIsNoReasonToStop) {
  begin_on_a("1 2");
  come("b");
  commit("a", 5);
  commit("a", 10);
  EXPECT_FALSE(sent<ForwardSignal>("a"));
}

TEST_F(ElasticTest, ARunThatSaysNothingOfItsWorldsStaysAsItIs) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  come("b");
  commit("a", 5);
  commit("a", 10);
  EXPECT_FALSE(sent<ForwardSignal>("a"));
}

TEST_F(ElasticTest, ARunWhoseRanksDoNotStopAtASignalDoesNotGrow) {
  begin_on_a("keep 1 2 3 4");
  come("b");
  commit("a", 5);
  commit("a", 10);
  EXPECT_FALSE(sent<ForwardSignal>("a"));
}

TEST_F(ElasticTest, ARunThatIsToEndDoesNotGrow) {
  begin_on_a("2 4");
  come("b");
  tell(RunSignal{SIGTERM});
  forget();
  commit("a", 5);
  commit("a", 10);
  const auto signal = sent<ForwardSignal>("a");
  EXPECT_TRUE(!signal || signal->number == SIGTERM);
  ended("a", stopped(2));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(ElasticTest, WhoAsksARunToEndThatGrowsHastensNoSave) {
  for (const int number : {SIGUSR1, SIGTERM}) {
    begin_to_grow();
    forget();
    now_ += seconds(2);
    tell(RunSignal{number});
    EXPECT_FALSE(sent<ForwardSignal>("a"));
    ended("a", stopped(2));
    EXPECT_EQ(done<EndRun>().value().exit_code, 75);
  }
}

TEST_F(ElasticTest, WhoAsksARunToEndThatGrowsASecondTimeHastensIt) {
  begin_to_grow();
  tell(RunSignal{SIGTERM});
  forget();
  tell(RunSignal{SIGTERM});
  EXPECT_EQ(sent<ForwardSignal>("a").value(), (ForwardSignal{SIGTERM, 0, 1}));
}

TEST_F(ElasticTest, AHangOfRanksThatWereToSaveIsReported) {
  begin_to_grow();
  tell(RanksHang{{.kind = Hang::Kind::in_it}});
  ended("a", stopped(2));
  EXPECT_TRUE(done<TellReport>().value().report.hang) << "they end alike if they are told to end";
  EXPECT_EQ(run_->restarts(), 1);
}

}  // namespace
}  // namespace strata::launcher

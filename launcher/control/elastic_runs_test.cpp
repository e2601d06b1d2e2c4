// Runs whose hosts come and go, as their coordinator handles them.
#include <signal.h>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

/// Runs of hosts with two ranks each, of which one suffices.
class ElasticTest : public CoordinatorTest {
 protected:
  void open_elastic(const std::vector<std::string>& there) {
    Coordinator::Settings settings{.hosts = {"a", "b", "c"}, .least_hosts = 1, .restarts = {}};
    settings.lease = milliseconds(5000);
    settings.join = seconds(300);
    run_ = std::make_unique<Coordinator>(now_, settings);
    for (const std::string& host : there) come(host);
  }
  void come(const std::string& host, const std::string& agent = "1") {
    tell(AgentSaid{host, agent, Hello{.host = host, .agent = agent, .slots = 2}});
  }
  void say_worlds(const std::string& host, const std::string& numbers) {
    const ValueRequest request{.id = 7, .is_put = true, .key = "r/0/run/worlds", .value = numbers};
    tell(AgentSaid{host, "1", StoreRequest{run_->attempt(), request}});
  }
  void commit(const std::string& host, std::int64_t step) {
    RankState rank;
    rank.committed = step;
    rank.checkpoint = "out/step";
    tell(AgentSaid{host, "1",
                   Heartbeat{.newest = run_->attempt(), .has_ranks = true, .ranks = {rank}}});
  }
  /// Lets time pass in which these hosts, which have no ranks, answer.
  void pass(seconds time, const std::vector<std::string>& hosts) {
    for (; time > seconds(0); time -= seconds(1)) {
      tick_after(seconds(1));
      for (const std::string& host : hosts) beat(host, -1, false);
    }
  }
  std::vector<int> started(const std::string& host) {
    const auto start = sent<StartAttempt>(host);
    forget();
    return start ? start->placement.slots : std::vector<int>();
  }
  static AttemptFacts stopped(int ranks) {
    AttemptFacts facts;
    facts.exit_code = 75;
    facts.was_asked = facts.all_stopped = true;
    facts.ranks.resize(static_cast<std::size_t>(ranks));
    return facts;
  }
};

TEST_F(ElasticTest, MoreHostsHaveTimeToComeOnceThereAreEnough) {
  open_elastic({"a"});
  EXPECT_EQ(started("a"), std::vector<int>());
  pass(seconds(14), {"a"});
  come("b");
  EXPECT_EQ(started("a"), std::vector<int>());
  pass(seconds(1), {"a"});
  EXPECT_EQ(started("a"), (std::vector{2, 2}));
}

TEST_F(ElasticTest, AllHostsStartAtOnce) {
  open_elastic({"a", "b", "c"});
  EXPECT_EQ(started("a"), (std::vector{2, 2, 2}));
}

// Fault 10.
TEST_F(ElasticTest, ALostHostLeavesTheLargestWorldThatIsAdmitted) {
  open_elastic({"a", "b", "c"});
  say_worlds("a", "1 3 6");
  commit("a", 10);
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  ended("a", blames_a_peer(10));
  forget();
  ended("c", blames_a_peer(10));
  EXPECT_EQ(started("a"), std::vector<int>()) << "ranks of the lost host may still live";
  tick_after(seconds(3));
  beat("a", 0, false);
  beat("c", 0, false);
  tick_after(seconds(3));
  const auto start = sent<StartAttempt>("c").value();
  EXPECT_EQ(start.placement.slots, (std::vector{2, 1}));
  EXPECT_EQ(start.placement.attempt, 1);
  EXPECT_EQ(start.node, 1);
}

// Fault 10.
TEST_F(ElasticTest, AHostThatComesTakesPartAfterTheNextCheckpoint) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "1 2 3 4");
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

TEST_F(ElasticTest, WhoAsksARunToEndThatGrowsHastensNoSave) {
  for (const int number : {SIGUSR1, SIGTERM}) {
    open_elastic({"a"});
    pass(seconds(15), {"a"});
    say_worlds("a", "2 4");
    come("b");
    commit("a", 10);
    ASSERT_TRUE(sent<ForwardSignal>("a"));
    forget();
    now_ += seconds(2);
    tell(RunSignal{number});
    EXPECT_FALSE(sent<ForwardSignal>("a"));
    ended("a", stopped(2));
    EXPECT_EQ(done<EndRun>().value().exit_code, 75);
  }
}

TEST_F(ElasticTest, ARunWhoseRanksDoNotStopAtASignalDoesNotGrow) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "keep 1 2 3 4");
  come("b");
  commit("a", 5);
  commit("a", 10);
  EXPECT_FALSE(sent<ForwardSignal>("a"));
}

TEST_F(ElasticTest, ASpareHostThatIsToldToEndLeavesAlone) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "1 2");
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

TEST_F(ElasticTest, WhoAsksARunToEndThatGrowsASecondTimeHastensIt) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "2 4");
  come("b");
  commit("a", 10);
  tell(RunSignal{SIGTERM});
  forget();
  tell(RunSignal{SIGTERM});
  EXPECT_EQ(sent<ForwardSignal>("a").value(), (ForwardSignal{SIGTERM, 0, 1}));
}

TEST_F(ElasticTest, AHangOfRanksThatWereToSaveIsReported) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "2 4");
  come("b");
  commit("a", 10);
  ASSERT_TRUE(sent<ForwardSignal>("a"));
  tell(RanksHang{{.kind = Hang::Kind::in_it}});
  ended("a", stopped(2));
  EXPECT_TRUE(done<TellReport>().value().report.hang) << "they end alike if they are told to end";
  EXPECT_EQ(run_->restarts(), 1);
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

TEST_F(ElasticTest, HostsAreShownWithWhatBecomesOfThem) {
  open_elastic({"a"});
  const auto states = [this] {
    std::vector<std::string_view> found;
    for (const HostView& host : run_->hosts()) found.push_back(host.state);
    return found;
  };
  EXPECT_EQ(states(), (std::vector{kIsReady, kIsMissing, kIsMissing}));
  now_ += seconds(3);
  const WaitingView waiting = run_->waiting(now_).value();
  EXPECT_EQ(waiting.there, 1);
  EXPECT_EQ(waiting.needed, 1);
  EXPECT_EQ(waiting.all, 3);
  EXPECT_EQ(waiting.since, seconds(3));
  EXPECT_EQ(waiting.limit, seconds(300));
  EXPECT_EQ(waiting.missing, "b, c");
  pass(seconds(15), {"a"});
  EXPECT_FALSE(run_->waiting(now_));
  say_worlds("a", "1 2");
  come("b");
  EXPECT_EQ(states(), (std::vector{kHasRanks, kIsSpare, kIsMissing}));
  EXPECT_EQ(run_->hosts()[0].ranks, 2);
  EXPECT_EQ(run_->hosts()[1].slots, 2);
  tell(ConnectionBroke{"b", "1"});
  EXPECT_EQ(states(), (std::vector{kHasRanks, kIsLost, kIsMissing}));
}

TEST_F(ElasticTest, AHostThatIsRefusedIsSaidOnceUntilItComes) {
  open_elastic({"a"});
  const HostRefused refused{"b", "gpu-2", "10.0.0.2", "it has Strata 1, this host 2"};
  tell(refused);
  EXPECT_NE(done<Announce>().value().text.find(
                "host b (gpu-2 at 10.0.0.2) may not take part: it has Strata 1, this host 2"),
            std::string::npos);
  EXPECT_EQ(run_->hosts().size(), 3u);
  EXPECT_EQ(run_->hosts()[1].state, kIsRefused);
  EXPECT_EQ(run_->hosts()[1].why, refused.why);
  forget();
  tell(refused);
  EXPECT_FALSE(done<Announce>());
  tell(HostRefused{"a", "gpu-2", "10.0.0.2", "host a is there already"});
  EXPECT_TRUE(done<Announce>()) << "its number has another host";
  EXPECT_EQ(run_->hosts().size(), 4u);
  EXPECT_EQ(run_->hosts()[0].state, kIsReady);
  tell(AgentSaid{"b", "1", Hello{.host = "b", .agent = "1", .host_name = "gpu-2"}});
  EXPECT_EQ(run_->hosts()[1].state, kIsReady);
}

// Fault 13.
TEST_F(ElasticTest, ARunThatHasBegunNothingGivesWayToOneThatHasHosts) {
  open_elastic({});
  HostRefused refused{"b", "gpu-2", "10.0.0.2", "it has Strata 1, this host 2"};
  refused.is_of_earlier_run = true;
  tell(refused);
  EXPECT_EQ(done<EndRun>().value().exit_code, 78);
  EXPECT_NE(done<Announce>().value().text.find("host b (gpu-2 at 10.0.0.2) has had ranks"),
            std::string::npos);
  open_elastic({"a", "b", "c"});
  forget();
  tell(refused);
  EXPECT_FALSE(done<EndRun>()) << "this one has begun";
}

TEST_F(ElasticTest, TooFewHostsAreToldFromWhereTheRunGoesOn) {
  Coordinator::Settings settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}};
  settings.lease = milliseconds(5000);
  run_ = std::make_unique<Coordinator>(now_, settings);
  come("a");
  come("b");
  commit("a", 10);
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  AttemptFacts facts = blames_a_peer(10);
  facts.ranks.resize(2);
  ended("a", facts);
  forget();
  for (int second = 0; second < 80 && !done<EndRun>(); ++second) {
    beat("a", 0, false);
    tick_after(seconds(1));
  }
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
  EXPECT_NE(
      done<Announce>().value().text.find("--resume auto goes on from step 10, saved in out/step"),
      std::string::npos);
}

TEST_F(ElasticTest, HostsThatCanNeverHoldTheRanksAreSaid) {
  Coordinator::Settings settings{.hosts = {"a", "b"}, .least_hosts = 1, .restarts = {}};
  settings.worlds = {.least = 5, .most = 9};
  run_ = std::make_unique<Coordinator>(now_, settings);
  come("a");
  EXPECT_FALSE(done<EndRun>());
  come("b");
  EXPECT_EQ(done<EndRun>().value().exit_code, 78);
  EXPECT_NE(done<Announce>().value().text.find("4 ranks together, and the run needs at least 5"),
            std::string::npos);
}

TEST_F(ElasticTest, AWarningBeforeRanksStartEndsTheRun) {
  open_elastic({"a"});
  tell(RunSignal{SIGUSR1});
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(ElasticTest, AHostThatWouldMakeNoLargerWorldIsNoReasonToStop) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "1 2");
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

TEST_F(ElasticTest, ARunThatIsToEndDoesNotGrow) {
  open_elastic({"a"});
  pass(seconds(15), {"a"});
  say_worlds("a", "2 4");
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

TEST_F(ElasticTest, RanksThatDoNotFitStartAsAnotherNumber) {
  open_elastic({"a", "b", "c"});
  say_worlds("a", "1 2 4");
  AttemptFacts refused = killed(0, -1, -1);
  refused.exit_code = 78;
  refused.ranks = {{.ending = Ending{Ending::Kind::exited, 78}}, {}};
  ended("a", refused);
  AttemptFacts others = refused;
  others.failed->rank = 2;
  ended("b", others);
  others.failed->rank = 4;
  forget();
  ended("c", others);
  EXPECT_NE(done<Announce>().value().text.find("6 ranks do not fit"), std::string::npos);
  EXPECT_EQ(started("a"), (std::vector{2, 2}));
}

// Faults 10, 37.
TEST_F(ElasticTest, AHostThatFailsAgainAndAgainIsLeftOut) {
  open_elastic({"a", "b", "c"});
  for (int attempt = 0; attempt < 3; ++attempt) {
    AttemptFacts facts = killed(2, attempt, 10 + attempt);
    facts.ranks.resize(2);
    AttemptFacts peer = blames_a_peer(10 + attempt);
    peer.failed->rank = 0;
    peer.ranks.resize(2);
    forget();
    ended("b", facts);
    ended("a", peer);
    peer.failed->rank = 4;
    ended("c", peer);
  }
  EXPECT_EQ(run_->attempt(), 3);
  EXPECT_EQ(sent<StartAttempt>("c").value().placement.slots, (std::vector{2, 2}));
  EXPECT_FALSE(sent<StartAttempt>("b"));
  bool named = false;
  for (const CoordinatorAction& action : actions_)
    if (const auto* words = std::get_if<Announce>(&action))
      named |= words->text.find("because of host b") != std::string::npos;
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace strata::launcher

// With which hosts a run starts and goes on, and what is said of the others.
#include <signal.h>

#include "launcher/control/testing/elastic_rig.h"

namespace strata::launcher {
namespace {

constexpr const char* kOtherSecret =
    "its secret is not the one in keys/run; compare its --run-secret file with that, and give all "
    "hosts the same";

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

TEST_F(ElasticTest, AWarningBeforeRanksStartEndsTheRun) {
  open_elastic({"a"});
  tell(RunSignal{SIGUSR1});
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
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
  EXPECT_EQ(done<Announce>().value().text,
            "6 ranks do not fit the configuration; of fewer it admits 1, 2 or 4 ranks");
  EXPECT_EQ(started("a"), (std::vector{2, 2}));
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

TEST_F(ElasticTest, WhoDoesNotHaveTheSecretIsSaidOnceAndOfFewAddresses) {
  open_elastic({"a"});
  int said = 0;
  for (int address = 0; address < 100; ++address)
    for (int again = 0; again < 3; ++again) {
      forget();
      tell(StrangerRefused{"10.0.0." + std::to_string(address)});
      if (const auto told = done<Announce>()) {
        ++said;
        EXPECT_EQ(told->text, "a host at 10.0.0." + std::to_string(address) +
                                  " may not take part: " + kOtherSecret);
      }
    }
  EXPECT_EQ(said, 16);
  ASSERT_EQ(run_->hosts().size(), 3u + 16u);
  const HostView stranger = run_->hosts().back();
  EXPECT_EQ(stranger.number, "") << "nobody knows who it is";
  EXPECT_EQ(stranger.address, "10.0.0.9");
  EXPECT_EQ(stranger.state, kIsRefused);
  EXPECT_EQ(stranger.why, kOtherSecret);
  tell(AgentSaid{"b", "1", Hello{.host = "b", .agent = "1", .address = "10.0.0.9"}});
  EXPECT_EQ(run_->hosts().size(), 3u + 15u) << "it has been given the secret";
}

// Fault 35.
TEST_F(ElasticTest, WhoWaitedInVainLearnsWhyHostsWereRefused) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{
                .hosts = {"a", "b"}, .least_hosts = 2, .secret_file = "keys/run", .restarts = {}});
  come("a");
  tell(HostRefused{"b", "gpu-2", "10.0.0.2", "it was told --seed 3, this host 4"});
  tell(StrangerRefused{"10.0.0.3"});
  tick_after(seconds(60));
  EXPECT_EQ(done<EndRun>().value().exit_code, 78) << "no other start would let them in";
  EXPECT_EQ(sent<Dismiss>("a").value().exit_code, 78);
  EXPECT_EQ(
      done<Announce>().value().text,
      "1 of 2 hosts are there, and the run needs 2; missing: host b; host b (gpu-2 at "
      "10.0.0.2) may not take part: it was told --seed 3, this host 4; a host at 10.0.0.3 "
      "may not take part: its secret is not the one in keys/run; compare its --run-secret file "
      "with that, and give all hosts the same. Mend that before it starts again");
}

// Fault 35.
TEST_F(ElasticTest, AnotherStartIsAskedForWhereItMayHelp) {
  const HostRefused other_build{"b", "", "10.0.0.2", "it has Strata 1, this host 2"};
  HostRefused of_earlier_run = other_build;
  of_earlier_run.exit_code = 75;
  const HostRefused no_host{"7", "", "10.0.0.7", "the run has hosts a to d"};
  const HostRefused other{"8", "", "10.0.0.8", "the run has hosts a to d"};
  const HostRefused wrong_number{"a", "x", "", ""};
  const HostRefused there_already{"a", "", "10.0.0.5", "host a is there already", false, 75};
  const StrangerRefused stranger{"10.0.0.3"};
  const auto comes = [](const std::string& host) {
    return AgentSaid{host, "1", Hello{.host = host, .agent = "1"}};
  };
  struct Case {
    std::string why;
    int least;
    std::vector<CoordinatorEvent> refused;
    int exit_code;
  };
  const std::vector<Case> cases{
      {"nobody was refused", 2, {}, 75},
      {"it may be let in the next time", 4, {of_earlier_run}, 75},
      {"all are needed, and one was refused", 4, {other_build}, 78},
      {"c and d may come", 3, {other_build}, 75},
      {"the stranger may be anybody", 3, {other_build, stranger}, 75},
      {"one of c and d has a wrong number", 3, {other_build, no_host}, 78},
      {"d may come", 2, {other_build, no_host}, 75},
      {"strange numbers are no more than hosts that miss", 2, {other_build, no_host, other}, 78},
      {"a host of a number that is there may be a leftover", 4, {wrong_number}, 75},
      {"the one that was there has gone", 4, {there_already, ConnectionBroke{"a", "1"}}, 75},
      {"a was let in once, and another may not be meant for it",
       4,
       {ConnectionBroke{"a", "1"}, no_host, comes("b"), comes("c"), comes("d")},
       75},
      {"a was let in once", 4, {wrong_number, ConnectionBroke{"a", "1"}}, 75},
  };
  for (const Case& one : cases) {
    forget();
    run_ = std::make_unique<Coordinator>(
        now_, Coordinator::Settings{
                  .hosts = {"a", "b", "c", "d"}, .least_hosts = one.least, .restarts = {}});
    come("a");
    for (const CoordinatorEvent& event : one.refused) tell(event);
    tick_after(seconds(60));
    EXPECT_EQ(done<EndRun>().value().exit_code, one.exit_code) << one.why;
  }
}

// Fault 35.
TEST_F(ElasticTest, ARunThatHasHadRanksIsAskedToStartAgain) {
  const HostRefused other_build{"b", "", "10.0.0.2", "it has Strata 1, this host 2"};
  Coordinator::Settings settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}};
  settings.lease = milliseconds(5000);
  run_ = std::make_unique<Coordinator>(now_, settings);
  hello("a");
  tell(other_build);
  tell(StrangerRefused{"10.0.0.3"});
  hello("b");
  ASSERT_TRUE(sent<StartAttempt>("b"));
  tell(other_build);  // another host of that number
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  ended("a", blames_a_peer(10));
  for (int second = 0; second < 70 && !done<EndRun>(); ++second) {
    tick_after(seconds(1));
    if (!done<EndRun>()) beat("a", 0, false);
  }
  ASSERT_TRUE(done<EndRun>());
  EXPECT_EQ(done<EndRun>()->exit_code, 75) << "b agreed with all others once";
  EXPECT_NE(done<Announce>()->text.find("--resume auto goes on from step 10"), std::string::npos);
}

// Fault 35.
TEST_F(ElasticTest, ARunThatAnEarlierCoordinatorBeganIsAskedToStartAgain) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a", "b"}, .least_hosts = 2, .restarts = {}});
  hello("a", "1", 0);
  tell(HostRefused{"b", "", "10.0.0.2", "it has Strata 1, this host 2"});
  tick_after(seconds(60));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

TEST_F(ElasticTest, ARunThatNoHostMayLeaveSaysSoOnce) {
  const std::string words =
      "the configuration admits only 6 ranks: the run ends when it loses a host that does not come "
      "back within 60 s";
  open_elastic({"a", "b", "c"});
  forget();
  say_worlds("a", "6");
  ASSERT_TRUE(done<Announce>());
  EXPECT_EQ(done<Announce>()->text, words);
  forget();
  say_worlds("a", "6");
  EXPECT_FALSE(done<Announce>());
  open_elastic({"a", "b", "c"});
  forget();
  say_worlds("a", "4 6");
  EXPECT_FALSE(done<Announce>()) << "two hosts hold 4";
  begin_on_a("2 4");
  EXPECT_FALSE(done<Announce>()) << "one host was said to suffice, and it is the last";
}

TEST_F(ElasticTest, AnEndWhileARunWaitsForHostsIsSaid) {
  open_elastic({"a"});
  forget();
  tell(RunSignal{SIGTERM});
  EXPECT_EQ(done<Announce>().value().text,
            "the run ends, as it was asked to; it waited for hosts and has no ranks");
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
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

}  // namespace
}  // namespace strata::launcher

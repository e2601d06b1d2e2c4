// Tests what a coordinator says of hosts that cannot come, are lost, have left or wait as spares.
#include <signal.h>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

class LostHostsTest : public CoordinatorTest {
 protected:
  /// Begins a run of hosts a and b with a alone, so that b is a spare if it comes.
  void begin_without_b() {
    Coordinator::Settings settings{.hosts = {"a", "b"}, .least_hosts = 1, .restarts = {}};
    settings.lease = milliseconds(5000);
    settings.last_call = milliseconds(1000);
    run_ = std::make_unique<Coordinator>(now_, settings);
    hello("a");
    tick_after(settings.last_call);
  }

  /// How often a line with these words was said.
  std::ptrdiff_t said(const std::string& words) const {
    return std::ranges::count_if(actions_, [&](const CoordinatorAction& action) {
      const auto* line = std::get_if<Announce>(&action);
      return line != nullptr && line->text.find(words) != std::string::npos;
    });
  }
};

// Fault 10.
TEST_F(LostHostsTest, ADeadAgentIsToldAtOnceAlthoughItsRanksHaveEndedTheAttemptBefore) {
  open({"a", "b"});
  tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 exited with code 75", true}});
  tell(ConnectionBroke{"b", "1"});
  EXPECT_EQ(run_->next_deadline(), now_ + kReconnect);
  tick_after(kReconnect);
  EXPECT_EQ(said("host b is lost: its mlaunch has ended"), 1);
  for (int second = 0; second < 3; ++second) tick_after(seconds(1));
  EXPECT_EQ(said("host b is lost"), 1) << "once";
  EXPECT_FALSE(done<TellReport>()) << "its ranks may live";
  ended("a", blames_a_peer(-1));
  tick_after(seconds(4));
  EXPECT_NE(done<TellReport>().value().report.lost_because.find("host b is lost"),
            std::string::npos);
}

TEST_F(LostHostsTest, RanksOfALostHostHaveEndedOnceItsLeaseHas) {
  open({"a", "b"});
  RankState rank;
  rank.phase = Phase::backward;
  tell(AgentSaid{"b", "1", Heartbeat{.newest = 0, .has_ranks = true, .ranks = {rank}}});
  tell(ConnectionBroke{"b", "1"});
  tick_after(kReconnect);
  ended("a", blames_a_peer(40));
  ASSERT_EQ(run_->ranks().size(), 1U);
  EXPECT_FALSE(run_->ranks()[0].state.ended) << "nobody knows yet";
  for (int second = 0; second < 6; ++second) tick_after(seconds(1));
  EXPECT_TRUE(run_->waiting(now_)) << "for the lost host";
  ASSERT_EQ(run_->ranks().size(), 1U);
  EXPECT_TRUE(run_->ranks()[0].state.ended);
}

TEST_F(LostHostsTest, AllLostHostsAreTold) {
  open({"a", "b", "c"});
  tell(ConnectionBroke{"b", "1"});
  tell(ConnectionBroke{"c", "1"});
  tick_after(kReconnect);
  for (int second = 0; second < 6; ++second) {
    tick_after(seconds(1));
    beat("a", 0, true);
  }
  ended("a", blames_a_peer(40));
  EXPECT_EQ(run_->hosts()[1].state, kIsLost);
  EXPECT_EQ(run_->hosts()[1].why,
            "its mlaunch has ended, or the connection to it broke; no sign of life for 6 s");
  const std::string told = done<TellReport>().value().report.lost_because;
  EXPECT_EQ(told,
            "host b is lost: its mlaunch has ended, or the connection to it broke; host c is lost: "
            "its mlaunch has ended, or the connection to it broke");
}

TEST_F(LostHostsTest, ASpareThatDiesIsToldOnce) {
  begin_without_b();
  beat("a", 0, true);
  hello("b");
  tell(ConnectionBroke{"b", "1"});
  EXPECT_EQ(run_->next_deadline(), now_ + kReconnect);
  for (int tick = 0; tick < 3; ++tick) tick_after(kReconnect);
  EXPECT_EQ(said("spare host b is gone: its mlaunch has ended"), 1);
  EXPECT_TRUE(run_->is_running());
}

TEST_F(LostHostsTest, WhoAsksForAnEndAfterAFailureLearnsThatNothingIsSavedNow) {
  for (const int committed : {-1, 40}) {
    open({"a", "b"});
    tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 was killed", false}});
    AttemptFacts facts = killed(0, 57, committed);
    ended("a", facts);
    forget();
    tell(RunSignal{SIGTERM});
    EXPECT_EQ(
        said(std::string("SIGTERM comes after a failure has ended the ranks, so that they "
                         "save nothing now: ") +
             (committed < 0 ? "nothing has been saved before" : "step 40 is saved in out/step")),
        1);
    now_ += seconds(2);
    tell(RunSignal{SIGTERM});
    EXPECT_EQ(said("SIGTERM"), 1) << "once";
  }
}

TEST_F(LostHostsTest, RanksThatWereAskedInTimeHaveSaved) {
  open({"a", "b"});
  tell(RunSignal{SIGTERM});
  tell(AgentSaid{"a", "1", RankFailed{0, 0, "rank 0 exited with code 75", true}});
  now_ += seconds(2);
  tell(RunSignal{SIGTERM});
  EXPECT_EQ(said("save nothing"), 0);
}

TEST_F(LostHostsTest, AllThatCannotComeAreNamedWhereThatIsAskedFor) {
  Coordinator::Settings settings{.hosts = {"a", "b", "c", "d"}, .least_hosts = 4, .restarts = {}};
  settings.names_all_missing = true;
  run_ = std::make_unique<Coordinator>(now_, settings);
  hello("a");
  tell(HostCannotCome{"b", "no route"});
  tell(HostCannotCome{"c", "refused"});
  tell(HostCannotCome{"b", "no route"});
  EXPECT_FALSE(done<EndRun>()) << "of d nothing is known";
  hello("d");
  EXPECT_EQ(said("host b cannot take part: no route"), 1);
  EXPECT_EQ(said("host c cannot take part: refused"), 1);
  EXPECT_EQ(done<EndRun>().value().exit_code, 69);
}

TEST_F(LostHostsTest, AHostThatHasLeftIsNotMissing) {
  open({"a", "b"}, 1);
  const auto state_of_b = [&] { return run_->hosts()[1].state; };
  const ValueRequest worlds{.id = 7, .is_put = true, .key = "r/0/run/worlds", .value = "1 2"};
  tell(AgentSaid{"a", "1", StoreRequest{0, worlds}});
  tell(AgentSaid{"b", "1", SignalCame{SIGTERM}});
  EXPECT_EQ(state_of_b(), kIsLeaving);
  AttemptFacts stopped = well_done();
  stopped.exit_code = 75;
  stopped.all_stopped = true;
  ended("a", stopped);
  ended("b", stopped);
  ASSERT_TRUE(sent<Dismiss>("b"));
  EXPECT_EQ(state_of_b(), kHasLeft);
  beat("a", 0, false);
  hello("b", "2");
  EXPECT_NE(state_of_b(), kHasLeft);
}

TEST_F(LostHostsTest, AHostThatIsRefusedIsNotCountedAmongThoseThatMiss) {
  run_ = std::make_unique<Coordinator>(
      now_, Coordinator::Settings{.hosts = {"a", "b", "c"}, .least_hosts = 3, .restarts = {}});
  hello("a");
  tell(HostRefused{"b", "gpu-2", "10.0.0.2", "it differs"});
  EXPECT_EQ(run_->waiting(now_).value().missing, "c");
  EXPECT_EQ(run_->waiting(now_).value().refused, "b");
}

TEST_F(LostHostsTest, ASpareIsToldThatItIsOne) {
  open({"a"}, 1);
  beat("a", 0, true);
  EXPECT_FALSE(sent<Lease>("a").value().is_spare);
  begin_without_b();
  beat("a", 0, true);
  hello("b");
  beat("b", -1, false);
  EXPECT_TRUE(sent<Lease>("b").value().is_spare);
}

}  // namespace
}  // namespace strata::launcher

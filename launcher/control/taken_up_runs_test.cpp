// Runs whose coordinator died, as the one handles them that takes them up.
#include <signal.h>

#include <utility>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

/// A run whose coordinator died; another one takes it up.
class TakenUpTest : public CoordinatorTest {
 protected:
  void open_again(const std::vector<std::string>& hosts, const std::string& own = "",
                  seconds join = seconds(60)) {
    Coordinator::Settings settings{.hosts = hosts,
                                   .own_host = own,
                                   .least_hosts = static_cast<int>(hosts.size()),
                                   .restarts = {}};
    settings.lease = milliseconds(5000);
    settings.join = join;
    run_ = std::make_unique<Coordinator>(now_, settings);
  }
  /// Lets time pass until no rank can have a lease of the coordinator before; hosts answer.
  void outlast_leases(const std::vector<std::pair<std::string, std::string>>& agents) {
    for (int i = 0; i < 13; ++i) {
      tick_after(milliseconds(500));
      for (const auto& [host, agent] : agents) beat(host, -1, false, agent);
    }
  }
};

// Fault 13.
TEST_F(TakenUpTest, GoesOnWhereTheCoordinatorDied) {
  open_again({"a", "b"});
  hello("a");
  hello("b", "1", 4);
  EXPECT_FALSE(sent<StartAttempt>("a")) << "ranks of the attempt before may live";
  beat("b", 4, true);
  EXPECT_EQ(sent<StopAttempt>("b").value().attempt, 4);
  beat("b", 4, false);
  EXPECT_FALSE(sent<StartAttempt>("a")) << "another agent of a may have ranks, and has not come";
  EXPECT_EQ(run_->next_deadline(), now_ + milliseconds(6500));
  outlast_leases({{"a", "1"}, {"b", "1"}});
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 5);
  EXPECT_EQ(sent<StartAttempt>("a").value().lock_wait, kLostHostsLock) << "of that coordinator";
}

// Fault 13.
TEST_F(TakenUpTest, GoesOnAtOnceWhereAllAgentsOfBeforeHaveCome) {
  open_again({"a", "b"}, "a");
  hello("a");
  hello("b", "1", 4);
  EXPECT_FALSE(sent<StartAttempt>("a")) << "b may have ranks";
  beat("b", 4, false);
  EXPECT_TRUE(sent<StartAttempt>("a")) << "the agent of a died with the coordinator, which it was";
}

TEST_F(TakenUpTest, SleepsUntilRanksOfBeforeHaveEndedHoweverShortHostsAreWaitedFor) {
  open_again({"a", "b", "c"}, "a", seconds(1));
  const Coordinator::TimePoint opened = now_;
  hello("a");
  beat("a", -1, false);
  hello("b", "1", 4);
  tick_after(milliseconds(1000));
  int ticks = 0;
  for (; !done<EndRun>() && ticks < 10; ++ticks) {
    ASSERT_GT(run_->next_deadline().value(), now_);
    tick_after(std::chrono::ceil<milliseconds>(*run_->next_deadline() - now_));
  }
  EXPECT_EQ(now_ - opened, milliseconds(6500));
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

// Faults 13, 31.
TEST_F(TakenUpTest, ANewAgentWaitsForRanksOfTheOneBefore) {
  open_again({"a"});
  hello("a", "1", 4);
  outlast_leases({});
  beat("a", 4, true);
  hello("a", "2");
  EXPECT_FALSE(sent<StartAttempt>("a")) << "ranks of the agent before live";
  beat("a", 4, false);
  EXPECT_EQ(done<SendToAgent>().value().agent, "2");
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 5);
}

// Fault 13.
TEST_F(TakenUpTest, EndsAtASignalOnceNoRankIsLeft) {
  open_again({"a", "b"});
  hello("b", "1", 4);
  outlast_leases({});
  beat("b", 4, true);
  tell(RunSignal{SIGTERM});
  EXPECT_FALSE(done<EndRun>()) << "ranks of the attempt before live";
  beat("b", 4, false);
  EXPECT_EQ(done<EndRun>().value().exit_code, 75);
}

}  // namespace
}  // namespace strata::launcher

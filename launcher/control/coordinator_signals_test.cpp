// Signals to a run, as the coordinator hands them on.
#include <signal.h>

#include <algorithm>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

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

}  // namespace
}  // namespace strata::launcher

#include "launcher/control/agent_control.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace strata::launcher {
namespace {

class AgentControlTest : public testing::Test {
 protected:
  template <typename Message>
  [[nodiscard]] std::optional<Message> sent() const {
    for (const ControlAction& action : last_)
      if (const auto* send = std::get_if<SendToCoordinator>(&action))
        if (const auto* message = std::get_if<Message>(&send->message)) return *message;
    return {};
  }

  RunControl::TimePoint now_{};
  AgentControl control_{Hello{.host = "b", .agent = "9", .slots = 2}};
  std::vector<ControlAction> last_ = control_.begin(now_);
};

TEST_F(AgentControlTest, SaysHelloOnEachConnection) {
  EXPECT_TRUE(last_.empty());
  EXPECT_EQ(control_.next_deadline(), std::nullopt);
  last_ = control_.connect(now_);
  EXPECT_EQ(sent<Hello>().value().slots, 2);
  last_ = control_.connect(now_);
  EXPECT_TRUE(sent<Hello>());
}

TEST_F(AgentControlTest, TellsSignalsToTheCoordinator) {
  last_ = control_.connect(now_);
  last_ = control_.handle(now_, CoordinatorEvent(RunSignal{SIGTERM}));
  EXPECT_EQ(sent<SignalCame>().value().number, SIGTERM);
  EXPECT_TRUE(control_.handle(now_, CoordinatorEvent(CoordinatorTick{})).empty());
}

TEST_F(AgentControlTest, EndsWithTheCodeOfTheRun) {
  last_ = control_.connect(now_);
  last_ = control_.handle(now_, AgentEvent(CoordinatorSaid{Dismiss{75, "it was stopped"}}));
  EXPECT_EQ(std::get<Announce>(last_.front()).text, "it was stopped");
  EXPECT_EQ(std::get<EndRun>(last_.back()).exit_code, 75);
}

}  // namespace
}  // namespace strata::launcher

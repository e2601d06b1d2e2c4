#include "launcher/control/local_control.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace strata::launcher {
namespace {

template <typename Action>
std::optional<Action> found(const std::vector<LocalAction>& actions) {
  for (const LocalAction& action : actions)
    if (const auto* one = std::get_if<Action>(&action)) return *one;
  return {};
}

AttemptFacts killed(std::int64_t committed) {
  AttemptFacts facts;
  facts.exit_code = 137;
  facts.failed = AttemptFacts::Failed{1, "", ""};
  facts.ranks.resize(2);
  facts.ranks[1] = {.ending = Ending{Ending::Kind::killed, SIGKILL}, .step = committed + 7};
  facts.committed = committed;
  return facts;
}

class LocalControlTest : public testing::Test {
 protected:
  LocalControl::TimePoint now_{};
  LocalControl control_{now_, "node7", 2, {}, std::chrono::seconds(30)};
};

TEST_F(LocalControlTest, StartsAtOnceAndAgainAfterAFailure) {
  const auto start = found<StartGroup>(control_.begin(now_)).value().start;
  EXPECT_EQ(start.placement.slots, std::vector{2});
  EXPECT_EQ(start.placement.attempt, 0);
  const auto failure =
      control_.handle(now_, AgentEvent(FirstFailure{{.rank = 1, .reason = "rank 1 was killed"}}));
  EXPECT_TRUE(found<EndGroup>(failure));
  const auto ended = control_.handle(now_, AgentEvent(GroupEnded{killed(40)}));
  EXPECT_EQ(found<TellReport>(ended).value().report.hosts.front().host, "node7");
  EXPECT_EQ(found<StartGroup>(ended).value().start.placement.attempt, 1);
  EXPECT_EQ(found<StartGroup>(ended).value().start.last_step, 47);
}

TEST_F(LocalControlTest, EndsWithTheRanksCode) {
  control_.begin(now_);
  AttemptFacts facts = killed(-1);
  const auto ended = control_.handle(now_, AgentEvent(GroupEnded{facts}));
  EXPECT_EQ(found<EndRun>(ended).value().exit_code, 137);
}

TEST_F(LocalControlTest, PassesSignalsOn) {
  control_.begin(now_);
  const auto actions = control_.handle(now_, CoordinatorEvent(RunSignal{SIGTERM}));
  EXPECT_EQ(found<SignalGroup>(actions).value().number, SIGTERM);
}

TEST_F(LocalControlTest, TellsOfRanksThatHangAndEndsThem) {
  control_.begin(now_);
  const std::vector<RankState> ranks{
      {.rank = 0, .phase = Phase::forward, .step = 7, .beats = 9},
      {.rank = 1, .phase = Phase::forward, .step = 7, .beats = 9, .held = true}};
  std::optional<TellHang> told;
  std::vector<LocalAction> last;
  for (int second = 0; second < 9 && !told; ++second) {
    now_ += kHeartbeat;
    last = control_.handle(now_, AgentEvent(AgentTick{ranks}));
    told = found<TellHang>(last);
  }
  EXPECT_EQ(told.value().hang.rank, 1);
  EXPECT_TRUE(std::holds_alternative<TellHang>(last.front())) << "before they are ended";
  EXPECT_TRUE(found<EndGroup>(last));
  AttemptFacts facts = killed(40);
  facts.failed.reset();
  const auto ended = control_.handle(now_, AgentEvent(GroupEnded{facts}));
  EXPECT_EQ(found<TellReport>(ended).value().report.hung_rank, 1);
  EXPECT_EQ(found<StartGroup>(ended).value().start.placement.attempt, 1);
}

TEST_F(LocalControlTest, IsDueEverySecond) {
  control_.begin(now_);
  control_.handle(now_, AgentEvent(AgentTick{}));
  EXPECT_EQ(control_.next_deadline(), now_ + kHeartbeat);
}

}  // namespace
}  // namespace strata::launcher

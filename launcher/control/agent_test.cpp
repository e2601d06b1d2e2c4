#include "launcher/control/agent.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AgentTest : public testing::Test {
 protected:
  void connect() { keep(agent_.connect(now_)); }
  void tick() { keep(agent_.handle(now_, AgentTick{})); }
  void hear(CoordinatorMessage message) {
    keep(agent_.handle(now_, CoordinatorSaid{std::move(message)}));
  }
  void group_ended() { keep(agent_.handle(now_, GroupEnded{})); }
  void keep(std::vector<AgentAction> actions) { actions_ = std::move(actions); }

  /// Beats, and gets an answer `later`.
  void get_lease(milliseconds later = milliseconds(0)) {
    tick();
    const std::int64_t number = sent<Heartbeat>().value().number;
    now_ += later;
    hear(Lease{number});
  }
  static StartAttempt attempt(int number) { return {.placement = {.attempt = number}}; }

  template <typename Action>
  [[nodiscard]] std::optional<Action> done() const {
    for (const AgentAction& action : actions_)
      if (const auto* found = std::get_if<Action>(&action)) return *found;
    return {};
  }
  template <typename Message>
  [[nodiscard]] std::optional<Message> sent() const {
    for (const AgentAction& action : actions_)
      if (const auto* message = std::get_if<SendToCoordinator>(&action))
        if (const auto* found = std::get_if<Message>(&message->message)) return *found;
    return {};
  }

  Agent agent_{Hello{.host = "a"}, kLease};
  Agent::TimePoint now_{};
  std::vector<AgentAction> actions_;
};

TEST_F(AgentTest, SaysHelloAndBeatsEverySecond) {
  connect();
  EXPECT_EQ(sent<Hello>().value().host, "a");
  EXPECT_EQ(agent_.next_deadline(), now_);
  tick();
  EXPECT_EQ(sent<Heartbeat>().value().number, 0);
  EXPECT_EQ(agent_.next_deadline(), now_ + kHeartbeat);
  now_ += kHeartbeat;
  tick();
  EXPECT_EQ(sent<Heartbeat>().value().number, 1);
}

TEST_F(AgentTest, StartsRanksOnlyUnderALease) {
  connect();
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>()) << "no heartbeat has been answered";
  get_lease();
  hear(attempt(0));
  EXPECT_EQ(done<StartGroup>().value().start, attempt(0));
  EXPECT_EQ(done<StartGroup>().value().lease, now_ + kLease);
}

TEST_F(AgentTest, SaysOnceThatItIsASpare) {
  connect();
  get_lease();
  EXPECT_FALSE(done<Announce>());
  tick();
  hear(Lease{.heartbeat = 0, .attempt = 2, .is_spare = true});
  EXPECT_NE(done<Announce>().value().text.find("host a is a spare"), std::string::npos);
  hear(Lease{.heartbeat = 1, .attempt = 2, .is_spare = true});
  EXPECT_FALSE(done<Announce>());
  hear(Lease{.heartbeat = 2, .attempt = 3});
  hear(Lease{.heartbeat = 3, .attempt = 4, .is_spare = true});
  EXPECT_TRUE(done<Announce>()) << "once more";
}

TEST_F(AgentTest, TellsSignalsAgainOnEachConnection) {
  keep(agent_.handle(now_, AgentSignal{SIGTERM}));
  keep(agent_.handle(now_, AgentSignal{SIGTERM}));
  EXPECT_EQ(sent<SignalCame>().value().index, 1);
  connect();
  EXPECT_EQ(sent<SignalCame>().value().index, 0);
}

TEST_F(AgentTest, RanksThatItKillsItselfDidNotFail) {
  connect();
  get_lease();
  hear(attempt(0));
  now_ += kLease;
  tick();
  ASSERT_TRUE(done<KillGroup>());
  keep(agent_.handle(now_, FirstFailure{}));
  EXPECT_FALSE(sent<RankFailed>());
}

TEST_F(AgentTest, StartsNothingBesideRanksThatDoNotEnd) {
  connect();
  get_lease();
  hear(attempt(0));
  AttemptFacts facts;
  facts.left_behind = true;
  keep(agent_.handle(now_, GroupEnded{facts}));
  tick();
  EXPECT_TRUE(sent<Heartbeat>().value().has_ranks);
  hear(attempt(1));
  EXPECT_FALSE(done<StartGroup>());
}

// Fault 31.
TEST_F(AgentTest, StartsNoAttemptTwiceAndNoneBesideAnother) {
  connect();
  get_lease();
  hear(attempt(0));
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>());
  hear(attempt(1));
  EXPECT_FALSE(done<StartGroup>()) << "ranks of attempt 0 are left";
  group_ended();
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>());
  hear(attempt(1));
  EXPECT_TRUE(done<StartGroup>());
}

// Fault 11.
TEST_F(AgentTest, CountsALeaseFromWhenItsHeartbeatWasSent) {
  connect();
  const Agent::TimePoint sent = now_;
  get_lease(milliseconds(3000));
  hear(attempt(0));
  EXPECT_EQ(done<StartGroup>().value().lease, sent + kLease);
}

// Fault 11.
TEST_F(AgentTest, KillsItsRanksWhenTheLeaseEnds) {
  connect();
  const Agent::TimePoint sent = now_;
  get_lease();
  hear(attempt(0));
  now_ = sent + kLease - milliseconds(1);
  tick();
  EXPECT_FALSE(done<KillGroup>());
  const std::int64_t late = this->sent<Heartbeat>().value().number;
  EXPECT_EQ(agent_.next_deadline(), sent + kLease);
  now_ = sent + kLease;
  tick();
  EXPECT_TRUE(done<KillGroup>());
  hear(Lease{late});
  EXPECT_FALSE(done<SetLease>()) << "the ranks are being killed";
  hear(attempt(1));
  EXPECT_FALSE(done<StartGroup>());
  group_ended();
  EXPECT_TRUE(this->sent<AttemptEnded>().value().lease_ended);
  get_lease();
  hear(attempt(1));
  EXPECT_TRUE(done<StartGroup>());
  group_ended();
  EXPECT_FALSE(this->sent<AttemptEnded>().value().lease_ended);
}

// Fault 34.
TEST_F(AgentTest, KillsItsRanksAtTheFirstEventAfterTheHostSlept) {
  connect();
  get_lease();
  hear(attempt(0));
  now_ += seconds(60);
  hear(StopAttempt{.attempt = 0, .reason = "host a is lost"});
  EXPECT_TRUE(done<KillGroup>()) << "others may have begun meanwhile";
}

// Fault 34.
TEST_F(AgentTest, KillsItsRanksWhereItFirstConnectsAgainAfterTheHostSlept) {
  connect();
  get_lease();
  hear(attempt(0));
  now_ += seconds(60);
  connect();
  EXPECT_TRUE(done<KillGroup>());
}

// Fault 31.
TEST_F(AgentTest, ObeysNoAnswerToAHeartbeatOfLongAgo) {
  connect();
  tick();
  const std::int64_t first = sent<Heartbeat>().value().number;
  now_ += seconds(6);
  hear(Lease{first});
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>());
}

TEST_F(AgentTest, NeverStartsWhatWasStoppedBeforeItBegan) {
  connect();
  get_lease();
  hear(StopAttempt{.attempt = 0, .reason = "rank 3 was killed"});
  EXPECT_FALSE(done<EndGroup>());
  EXPECT_EQ(agent_.next_deadline(), now_) << "the coordinator waits for the answer";
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>());
  tick();
  EXPECT_EQ(sent<Heartbeat>().value().newest, 0);
}

// Fault 31.
TEST_F(AgentTest, NeverStartsAnAttemptThatIsOverByTheTimeOfItsLease) {
  connect();
  tick();
  hear(Lease{sent<Heartbeat>().value().number, 1});
  hear(attempt(0));
  EXPECT_FALSE(done<StartGroup>()) << "the run went on without this host";
  hear(attempt(1));
  EXPECT_TRUE(done<StartGroup>());
}

TEST_F(AgentTest, HasHadRanksOnceSomeHaveStartedAndNotAsASpare) {
  connect();
  get_lease();
  hear(StopAttempt{.attempt = 3, .reason = "it began without this host"});
  connect();
  EXPECT_EQ(sent<Hello>().value().newest, 3);
  EXPECT_FALSE(sent<Hello>().value().has_had_ranks);
  EXPECT_FALSE(agent_.has_had_ranks());
  get_lease();
  hear(attempt(4));
  group_ended();
  connect();
  EXPECT_TRUE(sent<Hello>().value().has_had_ranks);
  EXPECT_TRUE(agent_.has_had_ranks());
}

// Fault 31.
TEST_F(AgentTest, EndsRanksOfTheAttemptThatIsNamed) {
  connect();
  get_lease();
  hear(attempt(1));
  hear(StopAttempt{.attempt = 0, .reason = "an old one"});
  EXPECT_FALSE(done<EndGroup>());
  hear(StopAttempt{.attempt = 1, .reason = "rank 3 was killed"});
  EXPECT_EQ(done<EndGroup>().value().reason, "rank 3 was killed");
}

TEST_F(AgentTest, PassesEachSignalOnOnce) {
  connect();
  get_lease();
  hear(attempt(1));
  hear(ForwardSignal{.number = 10, .attempt = 0, .index = 0});
  EXPECT_FALSE(done<SignalGroup>()) << "it was for ranks of before";
  hear(ForwardSignal{.number = 15, .attempt = 1, .index = 1});
  EXPECT_FALSE(done<SignalGroup>()) << "the first one comes first";
  hear(ForwardSignal{.number = 10, .attempt = 1, .index = 0});
  EXPECT_EQ(done<SignalGroup>().value().number, 10);
  hear(ForwardSignal{.number = 10, .attempt = 1, .index = 0});
  EXPECT_FALSE(done<SignalGroup>());
  hear(ForwardSignal{.number = 15, .attempt = 1, .index = 1});
  EXPECT_EQ(done<SignalGroup>().value().number, 15);
  tick();
  EXPECT_EQ(sent<Heartbeat>().value().signals, 2U);
}

TEST_F(AgentTest, TellsAgainOverANewConnectionHowAnAttemptEnded) {
  connect();
  get_lease();
  hear(attempt(0));
  group_ended();
  EXPECT_EQ(sent<AttemptEnded>().value().attempt, 0);
  connect();
  EXPECT_EQ(sent<Hello>().value().newest, 0);
  EXPECT_EQ(sent<AttemptEnded>().value().attempt, 0);
}

TEST_F(AgentTest, EndsOnceItIsDismissedAndHasNoRanks) {
  connect();
  get_lease();
  hear(attempt(0));
  hear(Dismiss{75, ""});
  EXPECT_FALSE(done<EndAgent>());
  EXPECT_TRUE(done<EndGroup>());
  group_ended();
  EXPECT_TRUE(done<EndAgent>());
  EXPECT_EQ(std::get<EndAgent>(actions_.back()).dismiss.exit_code, 75);
}

TEST_F(AgentTest, NeedsNoLeaseInTheCoordinatorsProcess) {
  agent_ = Agent(Hello{.host = "a"}, std::nullopt);
  connect();
  hear(attempt(0));
  EXPECT_TRUE(done<StartGroup>());
  EXPECT_FALSE(done<SetLease>());
  now_ += seconds(60);
  tick();
  EXPECT_FALSE(done<KillGroup>());
}

}  // namespace
}  // namespace strata::launcher

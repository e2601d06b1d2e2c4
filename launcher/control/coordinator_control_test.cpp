#include "launcher/control/coordinator_control.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>

namespace strata::launcher {
namespace {

template <typename Action>
std::optional<Action> found(const std::vector<ControlAction>& actions) {
  for (const ControlAction& action : actions)
    if (const auto* one = std::get_if<Action>(&action)) return *one;
  return {};
}

template <typename Action>
std::ptrdiff_t place_of(const std::vector<ControlAction>& actions) {
  return std::ranges::find_if(actions,
                              [](const auto& one) { return std::holds_alternative<Action>(one); }) -
         actions.begin();
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

class CoordinatorControlTest : public testing::Test {
 protected:
  RunControl::TimePoint now_{};
  CoordinatorControl control_{now_,
                              Hello{.host = "node7", .agent = "1", .slots = 2},
                              {.hosts = {"node7"}, .restarts = {}},
                              std::chrono::seconds(30)};
};

TEST_F(CoordinatorControlTest, StartsAtOnceAndAgainAfterAFailure) {
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

TEST_F(CoordinatorControlTest, EndsWithTheRanksCode) {
  control_.begin(now_);
  AttemptFacts facts = killed(-1);
  const auto ended = control_.handle(now_, AgentEvent(GroupEnded{facts}));
  EXPECT_EQ(found<EndRun>(ended).value().exit_code, 137);
}

TEST_F(CoordinatorControlTest, PassesSignalsOn) {
  control_.begin(now_);
  const auto actions = control_.handle(now_, CoordinatorEvent(RunSignal{SIGTERM}));
  EXPECT_EQ(found<SignalGroup>(actions).value().number, SIGTERM);
}

TEST_F(CoordinatorControlTest, TellsOfRanksThatHangAndEndsThem) {
  control_.begin(now_);
  const std::vector<RankState> ranks{
      {.rank = 0, .phase = Phase::forward, .step = 7, .beats = 9},
      {.rank = 1, .phase = Phase::forward, .step = 7, .beats = 9, .held = true}};
  std::optional<DescribeHang> told;
  std::vector<ControlAction> last;
  for (int second = 0; second < 9 && !told; ++second) {
    now_ += kHeartbeat;
    last = control_.handle(now_, AgentEvent(AgentTick{ranks}));
    told = found<DescribeHang>(last);
  }
  EXPECT_EQ(told.value().hang.rank, 1);
  EXPECT_TRUE(std::holds_alternative<Announce>(last.front())) << "at once";
  EXPECT_LT(place_of<DescribeHang>(last), place_of<EndGroup>(last)) << "before they are ended";
  EXPECT_TRUE(found<EndGroup>(last));
  AttemptFacts facts = killed(40);
  facts.failed.reset();
  const auto ended = control_.handle(now_, AgentEvent(GroupEnded{facts}));
  EXPECT_EQ(found<TellReport>(ended).value().report.hang.value().rank, 1);
  EXPECT_EQ(found<StartGroup>(ended).value().start.placement.attempt, 1);
}

TEST_F(CoordinatorControlTest, IsDueEverySecond) {
  control_.begin(now_);
  control_.handle(now_, AgentEvent(AgentTick{}));
  EXPECT_EQ(control_.next_deadline(), now_ + kHeartbeat);
}

/// A run of two hosts, at the coordinator's.
class TwoHostsTest : public testing::Test {
 protected:
  void hear(AgentMessage message) {
    last_ = control_.handle(now_, CoordinatorEvent(AgentSaid{"b", "9", std::move(message)}));
  }
  void tick(std::vector<RankState> ranks = {}) {
    last_ = control_.handle(now_, AgentEvent(AgentTick{std::move(ranks)}));
  }

  RunControl::TimePoint now_{};
  CoordinatorControl control_{
      now_,
      Hello{.host = "a", .agent = "1", .slots = 2},
      {.hosts = {"a", "b"}, .least_hosts = 2, .lease = kLease, .restarts = {}},
      std::chrono::seconds(30)};
  std::vector<ControlAction> last_ = control_.begin(now_);
};

TEST_F(TwoHostsTest, StartsOnBothOnceTheOtherHasCome) {
  EXPECT_FALSE(found<StartGroup>(last_));
  tick();
  hear(Hello{.host = "b", .agent = "9", .slots = 3});
  const auto own = found<StartGroup>(last_).value().start;
  EXPECT_EQ(own.placement.slots, (std::vector{2, 3}));
  EXPECT_EQ(own.node, 0);
  EXPECT_TRUE(found<StartGroup>(last_).value().lease) << "the own ranks end with theirs, too";
  const auto sent = found<SendToAgent>(last_).value();
  EXPECT_EQ(sent.host, "b");
  EXPECT_EQ(sent.agent, "9");
  EXPECT_EQ(std::get<StartAttempt>(sent.message).node, 1);
}

TEST_F(TwoHostsTest, ARankThatDoesNotEndIsNamedThoughTheOtherHostHasNoneAnyMore) {
  tick();
  hear(Hello{.host = "b", .agent = "9", .slots = 1});
  const std::vector<RankState> own{{.rank = 0, .phase = Phase::done, .step = 7, .beats = 9},
                                   {.rank = 1, .phase = Phase::done, .step = 7, .beats = 9}};
  Heartbeat beat{.number = 1,
                 .newest = 0,
                 .has_ranks = true,
                 .ranks = {{.rank = 2, .phase = Phase::done, .step = 7, .beats = 9}}};
  std::optional<Announce> said;
  for (int second = 0; second < 70 && !said; ++second) {
    now_ += kHeartbeat;
    ++beat.number;
    if (second == 2) {
      hear(AttemptEnded{0, {.was_asked = true, .ranks = {{.ending = Ending{}}}}});
      beat.has_ranks = false;
      beat.ranks.clear();
    }
    hear(beat);
    said = found<Announce>(last_);
    tick(own);
    if (!said) said = found<Announce>(last_);
  }
  ASSERT_TRUE(said) << "nobody looks at the ranks that are left";
  EXPECT_EQ(said->text.find("rank 0 on host a has ended its work"), 0U) << said->text;
}

TEST_F(TwoHostsTest, WhatHoldsARankOnTheOtherHostIsAskedThere) {
  tick();
  hear(Hello{.host = "b", .agent = "9", .slots = 1});
  const std::vector<RankState> own{{.rank = 0, .phase = Phase::forward, .step = 7, .beats = 9},
                                   {.rank = 1, .phase = Phase::forward, .step = 7, .beats = 9}};
  Heartbeat beat{
      .newest = 0,
      .has_ranks = true,
      .ranks = {{.rank = 2, .phase = Phase::forward, .step = 7, .beats = 9, .held = true}}};
  std::vector<SendToAgent> sent;
  const auto note_words = [&] {
    for (const ControlAction& action : last_)
      if (const auto* send = std::get_if<SendToAgent>(&action))
        if (!std::holds_alternative<Lease>(send->message)) sent.push_back(*send);
  };
  for (int second = 0; second < 9 && sent.empty(); ++second) {
    now_ += kHeartbeat;
    ++beat.number;
    hear(beat);
    note_words();
    if (!sent.empty()) break;
    tick(own);
    note_words();
  }
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(std::get<Collect>(sent[0].message).hang.rank, 2) << "before its ranks are ended";
  EXPECT_TRUE(std::holds_alternative<StopAttempt>(sent[1].message));
  EXPECT_FALSE(found<DescribeHang>(last_)) << "nothing holds ranks here";
  EXPECT_TRUE(found<EndGroup>(last_));
  EXPECT_EQ(found<Announce>(last_).value().text.find("rank 2 on host b has been stopped"), 0U);
}

/// Ranks of two hosts that beat often until a moment, and heartbeats at other times of each second,
/// later and later.
class StandstillTest : public testing::Test {
 protected:
  using Millis = std::chrono::milliseconds;
  static constexpr std::chrono::seconds kLimit{8};

  [[nodiscard]] RankState state_of(int rank, Millis stop) const {
    const Millis time = std::min(now_, stop);
    return {.rank = rank,
            .phase = Phase::forward,
            .step = time.count() / 900,
            .beats = 1 + static_cast<std::uint64_t>(time.count() / 10)};
  }
  std::vector<ControlAction> tell(CoordinatorControl& control, Millis stop) {
    if (now_ == next_a_) {
      next_a_ += kHeartbeat + Millis(draw_() % 3);
      return control.handle(at(now_),
                            AgentEvent(AgentTick{{state_of(0, stop), state_of(1, stop)}}));
    }
    next_b_ = sent_b_ += kHeartbeat + Millis(draw_() % 3);
    next_b_ += Millis(draw_() % 30);  // on its way
    Heartbeat beat{.number = ++number_, .newest = 0, .has_ranks = true};
    beat.ranks = {state_of(2, stop)};
    return control.handle(at(now_), CoordinatorEvent(AgentSaid{"b", "9", beat}));
  }
  /// Returns how long after `stop` a rank is named, if heartbeats of the other host come `later`.
  Millis named_after(Millis later, Millis stop) {
    CoordinatorControl control(
        at(Millis(0)), Hello{.host = "a", .agent = "1", .slots = 2},
        {.hosts = {"a", "b"}, .least_hosts = 2, .lease = kLease, .restarts = {}}, kLimit);
    control.begin(at(Millis(0)));
    control.handle(at(Millis(0)), AgentEvent(AgentTick{}));
    control.handle(at(Millis(0)),
                   CoordinatorEvent(AgentSaid{"b", "9", Hello{.host = "b", .agent = "9"}}));
    next_a_ = kHeartbeat;
    next_b_ = sent_b_ = kHeartbeat + later;
    number_ = 0;
    for (now_ = Millis(0); now_ < stop + 2 * kLimit;) {
      now_ = std::min(next_a_, next_b_);
      for (const ControlAction& action : tell(control, stop))
        if (std::holds_alternative<Announce>(action)) return now_ - stop;
    }
    return Millis::max();
  }
  static RunControl::TimePoint at(Millis time) { return RunControl::TimePoint{} + time; }

  std::mt19937 draw_{1};
  Millis now_{}, next_a_{}, next_b_{}, sent_b_{};
  std::int64_t number_ = 0;
};

// Fault 8.
TEST_F(StandstillTest, IsNamedWithinTwoSecondsAfterItsLimit) {
  Millis first = Millis::max(), last{};
  for (Millis later{1}; later < kHeartbeat; later += Millis(33))
    for (Millis stop(20'000); stop < Millis(21'000); stop += Millis(23)) {
      const Millis named = named_after(later, stop);
      first = std::min(first, named);
      last = std::max(last, named);
    }
  EXPECT_LT(last, kLimit + Millis(1600));
  EXPECT_GT(first, kLimit - Millis(500));
}

TEST_F(TwoHostsTest, AHostWithoutASignOfLifeIsLost) {
  tick();
  hear(Hello{.host = "b", .agent = "9", .slots = 1});
  std::optional<EndGroup> end;
  for (int second = 0; second < 8 && !end; ++second) {
    now_ += kHeartbeat;
    tick();
    last_ = control_.handle(now_, CoordinatorEvent(CoordinatorTick{}));
    end = found<EndGroup>(last_);
  }
  EXPECT_NE(end.value().reason.find("host b is lost"), std::string::npos);
}

}  // namespace
}  // namespace strata::launcher

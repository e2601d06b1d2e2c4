#include "launcher/control/testing/simulated_agent.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"
#include "launcher/control/testing/describe.h"

namespace strata::launcher::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kLateTimer{100};
constexpr int kMostTries = 60;

}  // namespace

SimulatedAgent::SimulatedAgent(Place place, SimulatedHost& host, Draws& draws, Trace& trace,
                               Network& network, SimulatedRanks& ranks)
    : place_(std::move(place)),
      host_(host),
      draws_(draws),
      trace_(trace),
      network_(network),
      ranks_(ranks),
      agent_(Hello{.host = host.name(), .agent = place_.agent, .slots = place_.slots},
             place_.lease) {}

void SimulatedAgent::connect() {
  if (!lives_ || stream_) return;
  if (!network_.can_connect(place_.host)) {
    if (++tries_ > kMostTries) return;
    const Duration back_off = milliseconds(100) * (1 << std::min(tries_, 4));
    return host_.after(draws_.between(back_off / 2, back_off), [this] { connect(); });
  }
  tries_ = 0;
  stream_ = network_.connect(place_.host, place_.agent, *this);
  trace_.note([&] { return fmt::format("agent {} of {} connects", place_.agent, host_.name()); });
  obey(agent_.connect(host_.local_time()));
}

void SimulatedAgent::hear(int coordinator, const CoordinatorMessage& message) {
  if (!lives_) return;
  coordinator_ = coordinator;
  trace_.note([&] {
    return fmt::format("agent {} of {} hears {}", place_.agent, host_.name(), describe(message));
  });
  handle(CoordinatorSaid{message});
}

void SimulatedAgent::stream_broke(int stream) {
  if (!lives_ || stream_ != stream) return;
  trace_.note([&] {
    return fmt::format("agent {} of {} sees its stream break", place_.agent, host_.name());
  });
  stream_.reset();
  host_.after(draws_.between(milliseconds(1), milliseconds(200)), [this] { connect(); });
}

void SimulatedAgent::rank_failed(const RankFailed& failed) {
  if (lives_) handle(FirstFailure{failed});
}

void SimulatedAgent::group_ended(const AttemptFacts& facts) {
  if (!lives_) return;
  group_ = nullptr;
  handle(GroupEnded{facts});
}

void SimulatedAgent::rank_asks(const ValueRequest& request) {
  if (lives_) handle(RankAsks{request});
}

void SimulatedAgent::crash() { die(false); }

void SimulatedAgent::crash_with_host() { die(true); }

void SimulatedAgent::signal(int number) {
  host_.when_it_runs([this, number] {
    if (lives_) handle(AgentSignal{number});
  });
}

void SimulatedAgent::die(bool with_host) {
  if (!lives_) return;
  lives_ = false;
  if (group_ != nullptr) ranks_.lose(*group_, !with_host);
  if (stream_) network_.leave(*stream_, with_host ? Duration(seconds(15)) : milliseconds(300));
  stream_.reset();
}

void SimulatedAgent::handle(const AgentEvent& event) {
  obey(agent_.handle(host_.local_time(), event));
}

void SimulatedAgent::obey(const std::vector<AgentAction>& actions) {
  for (const AgentAction& action : actions) std::visit([this](const auto& a) { act(a); }, action);
  if (lives_) set_timer();
}

void SimulatedAgent::set_timer() {
  const int timer = ++timers_;
  const auto deadline = agent_.next_deadline();
  if (!deadline) return;
  host_.after(host_.until(*deadline) + draws_.between(Duration(0), kLateTimer), [this, timer] {
    if (lives_ && timer == timers_)
      handle(AgentTick{group_ != nullptr ? ranks_.look(*group_) : std::vector<RankState>()});
  });
}

void SimulatedAgent::act(const SendToCoordinator& action) {
  if (stream_) network_.send(*stream_, action.message);
}

void SimulatedAgent::act(const StartGroup& action) {
  STRATA_CHECK(group_ == nullptr);
  trace_.note([&] {
    return fmt::format("agent {} of {} starts ranks of attempt {}", place_.agent, host_.name(),
                       action.start.placement.attempt);
  });
  group_ = &ranks_.start(*this, host_, coordinator_, action.start, place_.lease.has_value());
  if (action.lease) group_->lease_end = *action.lease;
}

void SimulatedAgent::act(const EndGroup&) {
  if (group_ != nullptr) ranks_.end(*group_);
}

void SimulatedAgent::act(const SignalGroup& action) {
  if (group_ != nullptr) ranks_.signal(*group_, action.number);
}

void SimulatedAgent::act(const KillGroup&) {
  trace_.note(
      [&] { return fmt::format("agent {} of {} kills its ranks", place_.agent, host_.name()); });
  if (group_ != nullptr) ranks_.kill(*group_);
}

void SimulatedAgent::act(const SetLease& action) {
  if (group_ != nullptr) group_->lease_end = action.until;
}

void SimulatedAgent::act(const AnswerRank& action) {
  if (group_ != nullptr) ranks_.answer(*group_, action.answer);
}

void SimulatedAgent::act(const EndAgent&) { die(false); }

}  // namespace strata::launcher::simulation

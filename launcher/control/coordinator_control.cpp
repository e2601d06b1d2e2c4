#include "launcher/control/coordinator_control.h"

#include <fmt/core.h>

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace strata::launcher {
namespace {

/// Heartbeats of several hosts come at several times of each second.
constexpr std::chrono::milliseconds kBetweenLooks{900};
/// Ranks that stand still at one heartbeat of their host count as still for half the time until the
/// next: so a hang is named at most one and a half heartbeats after its limit, and at the earliest
/// half a heartbeat before it.
constexpr std::chrono::milliseconds kStillAfterHeartbeat = kHeartbeat / 2;

}  // namespace

CoordinatorControl::CoordinatorControl(TimePoint now, const std::optional<Hello>& own,
                                       const Coordinator::Settings& run,
                                       std::chrono::seconds hang_limit)
    : own_(own), coordinator_(now, run), watch_(hang_limit) {
  if (own_) agent_.emplace(*own_, run.lease);
}

std::vector<ControlAction> CoordinatorControl::begin(TimePoint now) {
  if (agent_) take(agent_->connect(now));
  return deliver(now);
}

std::vector<ControlAction> CoordinatorControl::handle(TimePoint now, const AgentEvent& event) {
  if (agent_) take(agent_->handle(now, event));
  return deliver(now);
}

std::vector<ControlAction> CoordinatorControl::handle(TimePoint now,
                                                      const CoordinatorEvent& event) {
  take(coordinator_.handle(now, event));
  if (const auto* said = std::get_if<AgentSaid>(&event))
    if (const auto* beat = std::get_if<Heartbeat>(&said->message)) watch(now, *beat);
  return deliver(now);
}

std::optional<RunControl::TimePoint> CoordinatorControl::next_deadline() const {
  const auto coordinator = coordinator_.next_deadline();
  const auto agent = agent_ ? agent_->next_deadline() : std::nullopt;
  return !agent || (coordinator && *coordinator < *agent) ? coordinator : agent;
}

void CoordinatorControl::take(std::vector<AgentAction> actions) {
  for (AgentAction& action : actions)
    std::visit(
        [this](auto& one) {
          if constexpr (std::is_same_v<decltype(one), SendToCoordinator&>)
            to_coordinator_.push_back(std::move(one.message));
          else if constexpr (!std::is_same_v<decltype(one), EndAgent&>)
            actions_.emplace_back(std::move(one));
          // The run ends when the coordinator says so, not its own agent.
        },
        action);
}

void CoordinatorControl::take(std::vector<CoordinatorAction> actions) {
  for (CoordinatorAction& action : actions) {
    auto* message = std::get_if<SendToAgent>(&action);
    if (message && own_ && message->host == own_->host && message->agent == own_->agent) {
      to_agent_.push_back(std::move(message->message));
      continue;
    }
    ended_ |= std::holds_alternative<EndRun>(action);
    std::visit([this](auto& one) { actions_.emplace_back(std::move(one)); }, action);
  }
}

std::vector<ControlAction> CoordinatorControl::deliver(TimePoint now) {
  while (!ended_ && (!to_coordinator_.empty() || !to_agent_.empty())) {
    if (!to_coordinator_.empty()) {
      const AgentMessage message = std::move(to_coordinator_.front());
      to_coordinator_.pop_front();
      take(coordinator_.handle(now, AgentSaid{own_->host, own_->agent, message}));
      if (const auto* beat = std::get_if<Heartbeat>(&message)) watch(now, *beat);
    } else {
      const CoordinatorMessage message = std::move(to_agent_.front());
      to_agent_.pop_front();
      take(agent_->handle(now, CoordinatorSaid{message}));
    }
  }
  return std::exchange(actions_, {});
}

/// Looks at all ranks of the attempt, once each host has shown its own: every second, and whenever
/// a host shows what may be the rest of a hang.
void CoordinatorControl::watch(TimePoint now, const Heartbeat& heartbeat) {
  if (ended_ || !coordinator_.is_running()) return;
  if (heartbeat.newest == watched_) watch_.hear(now, heartbeat.ranks);
  const TimePoint known = coordinator_.states_since() + kStillAfterHeartbeat;
  const bool may_name_one = watch_.is_due(known) && !coordinator_.has_old_states();
  if (looked_ && now < *looked_ + kBetweenLooks && !may_name_one) return;
  std::vector<RankState> ranks;
  for (Coordinator::RankOfHost& one : coordinator_.ranks()) ranks.push_back(std::move(one.state));
  if (std::cmp_less(ranks.size(), coordinator_.world())) return;
  looked_ = now;
  if (std::exchange(watched_, coordinator_.attempt()) != coordinator_.attempt()) {
    watch_.start_again();
    stragglers_.start_again();
  }
  if (const auto found = stragglers_.look(now, ranks)) name_straggler(*found);
  const std::optional<Hang> hang = watch_.look(now, ranks, known);
  if (!hang) return;
  take(coordinator_.handle(now, RanksHang{*hang}));
}

void CoordinatorControl::name_straggler(const Straggler& found) {
  std::string host;
  for (const Coordinator::RankOfHost& one : coordinator_.ranks())
    if (one.state.rank == found.rank) host = one.host;
  actions_.emplace_back(Announce{fmt::format(
      "all ranks wait for rank {} on host {}: its own part of a step takes {:.3g} ms, others' "
      "{:.3g} ms (last {} steps); what else runs there?",
      found.rank, host, 1e3 * found.seconds, 1e3 * found.usual, found.steps)});
}

}  // namespace strata::launcher

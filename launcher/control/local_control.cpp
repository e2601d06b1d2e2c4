#include "launcher/control/local_control.h"

#include <utility>

namespace strata::launcher {
namespace {

constexpr const char* kAgent = "this process";

Hello hello_of(const std::string& host, int ranks) {
  return {.host = host, .agent = kAgent, .slots = ranks};
}

}  // namespace

LocalControl::LocalControl(TimePoint now, const std::string& host, int ranks,
                           RestartPolicy::Limits restarts, std::chrono::seconds hang_limit)
    : host_(host),
      agent_(hello_of(host, ranks), std::nullopt),
      coordinator_(now, {.hosts = {host}, .restarts = restarts}),
      watch_(hang_limit) {}

std::vector<LocalAction> LocalControl::begin(TimePoint now) {
  take(agent_.connect(now));
  return deliver(now);
}

std::vector<LocalAction> LocalControl::handle(TimePoint now, const AgentEvent& event) {
  take(agent_.handle(now, event));
  return deliver(now);
}

std::vector<LocalAction> LocalControl::handle(TimePoint now, const CoordinatorEvent& event) {
  take(coordinator_.handle(now, event));
  return deliver(now);
}

std::optional<LocalControl::TimePoint> LocalControl::next_deadline() const {
  const auto agent = agent_.next_deadline(), coordinator = coordinator_.next_deadline();
  return !agent || (coordinator && *coordinator < *agent) ? coordinator : agent;
}

void LocalControl::take(std::vector<AgentAction> actions) {
  for (AgentAction& action : actions) {
    if (auto* message = std::get_if<SendToCoordinator>(&action))
      to_coordinator_.push_back(std::move(message->message));
    else if (auto* start = std::get_if<StartGroup>(&action))
      actions_.emplace_back(std::move(*start));
    else if (auto* end = std::get_if<EndGroup>(&action))
      actions_.emplace_back(std::move(*end));
    else if (auto* signal = std::get_if<SignalGroup>(&action))
      actions_.emplace_back(*signal);
    else if (auto* kill = std::get_if<KillGroup>(&action))
      actions_.emplace_back(std::move(*kill));
  }
}

void LocalControl::take(std::vector<CoordinatorAction> actions) {
  for (CoordinatorAction& action : actions) {
    if (auto* message = std::get_if<SendToAgent>(&action)) {
      to_agent_.push_back(std::move(message->message));
    } else if (auto* report = std::get_if<TellReport>(&action)) {
      actions_.emplace_back(std::move(*report));
    } else if (auto* words = std::get_if<Announce>(&action)) {
      actions_.emplace_back(std::move(*words));
    } else if (auto* evidence = std::get_if<KeepEvidence>(&action)) {
      actions_.emplace_back(std::move(*evidence));
    } else {
      ended_ = true;
      actions_.emplace_back(std::get<EndRun>(action));
    }
  }
}

std::vector<LocalAction> LocalControl::deliver(TimePoint now) {
  while (!ended_ && (!to_coordinator_.empty() || !to_agent_.empty())) {
    if (!to_coordinator_.empty()) {
      const AgentMessage message = std::move(to_coordinator_.front());
      to_coordinator_.pop_front();
      take(coordinator_.handle(now, AgentSaid{host_, kAgent, message}));
      if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) watch(now, *heartbeat);
    } else {
      const CoordinatorMessage message = std::move(to_agent_.front());
      to_agent_.pop_front();
      take(agent_.handle(now, CoordinatorSaid{message}));
    }
  }
  return std::exchange(actions_, {});
}

void LocalControl::watch(TimePoint now, const Heartbeat& heartbeat) {
  if (ended_ || !coordinator_.is_running() || heartbeat.newest != coordinator_.attempt()) return;
  if (std::exchange(watched_, heartbeat.newest) != heartbeat.newest) watch_.start_again();
  const std::optional<Hang> hang = watch_.look(now, heartbeat.ranks);
  if (!hang) return;
  actions_.emplace_back(TellHang{*hang});
  take(coordinator_.handle(now, RanksHang{hang->rank, hang->describe()}));
}

}  // namespace strata::launcher

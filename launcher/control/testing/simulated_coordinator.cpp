#include "launcher/control/testing/simulated_coordinator.h"

#include <fmt/core.h>

#include "launcher/control/agent.h"
#include "launcher/control/testing/describe.h"

namespace strata::launcher::simulation {
namespace {

constexpr std::chrono::milliseconds kLateTimer{50};

Coordinator::Settings settings_of(const Scenario& scenario) {
  Coordinator::Settings settings;
  for (int host = 0; host < scenario.hosts(); ++host)
    settings.hosts.push_back(fmt::format("host{}", host));
  if (scenario.coordinator_on_host_0) settings.own_host = settings.hosts.front();
  settings.least_hosts = scenario.least_hosts;
  if (!scenario.in_one_process) settings.lease = kLease;
  settings.restarts = scenario.limits;
  return settings;
}

}  // namespace

SimulatedCoordinator::SimulatedCoordinator(int number, const Scenario& scenario,
                                           SimulatedHost& host, Draws& draws, Trace& trace,
                                           Network& network, RunChecks& checks, Callbacks callbacks)
    : number_(number),
      host_(host),
      draws_(draws),
      trace_(trace),
      network_(network),
      checks_(checks),
      callbacks_(std::move(callbacks)),
      control_(host.local_time(), {}, settings_of(scenario), scenario.hang_limit) {}

void SimulatedCoordinator::begin() {
  checks_.note_coordinator_begins(number_);
  network_.serve(number_, this);
  set_timer();
}

void SimulatedCoordinator::crash() {
  if (!lives_) return;
  lives_ = false;
  network_.stop_serving();
}

void SimulatedCoordinator::user_signal(int number) {
  host_.when_it_runs([this, number] {
    if (!lives_) return;
    checks_.note_user_signal(number);
    handle(RunSignal{number});
  });
}

void SimulatedCoordinator::hear(const std::string& host, const std::string& agent,
                                const AgentMessage& message) {
  if (!lives_) return;
  trace_.note([&] { return fmt::format("{} {}: {}", host, agent, describe(message)); });
  if (const auto* hello = std::get_if<Hello>(&message)) checks_.note_told_attempt(hello->newest);
  if (const auto* ended = std::get_if<AttemptEnded>(&message)) note_told(ended->facts);
  if (const auto* beat = std::get_if<Heartbeat>(&message))
    for (const RankState& rank : beat->ranks) checks_.note_told_commit(rank.committed, rank.step);
  if (const auto* came = std::get_if<SignalCame>(&message))
    checks_.note_signal_of_host(came->number, machine().is_running(), callbacks_.available(host));
  if (const auto* asked = std::get_if<StoreRequest>(&message))
    if (asked->request.key == kWorldsKey && asked->attempt == machine().attempt() &&
        machine().is_running())
      checks_.note_told_worlds();
  handle(AgentSaid{host, agent, message});
}

void SimulatedCoordinator::note_told(const AttemptFacts& facts) {
  checks_.note_told_commit(facts.committed, -1);
  for (const EndedRank& rank : facts.ranks) checks_.note_told_commit(-1, rank.step);
}

void SimulatedCoordinator::stream_broke(const std::string& host, const std::string& agent) {
  if (!lives_) return;
  trace_.note([&] { return fmt::format("the stream of {} {} broke", host, agent); });
  handle(ConnectionBroke{host, agent});
}

void SimulatedCoordinator::handle(const CoordinatorEvent& event) {
  const int before = machine().attempt();
  const std::vector<ControlAction> actions = control_.handle(host_.local_time(), event);
  for (const ControlAction& action : actions) note(action);
  checks_.on_actions(actions, callbacks_.available(""));
  if (machine().attempt() > before) callbacks_.attempt_begins(machine().attempt());
  for (const ControlAction& action : actions)
    if (const auto* send = std::get_if<SendToAgent>(&action))
      network_.send(send->host, send->agent, send->message);
  if (!checks_.has_ended()) return set_timer();
  lives_ = false;
  // What it has said still goes out before its process ends.
  host_.after(std::chrono::seconds(3), [this] { network_.stop_serving(); });
}

void SimulatedCoordinator::note(const ControlAction& action) {
  if (const auto* tell = std::get_if<TellReport>(&action))
    trace_.note([&] {
      const AttemptReport& report = tell->report;
      return fmt::format("report: attempt {}, node {}, lost '{}', hung '{}'", report.attempt,
                         report.failed_host, report.lost_because,
                         report.hang ? report.hang->describe() : "");
    });
  if (const auto* announce = std::get_if<Announce>(&action))
    trace_.note([&] { return announce->text; });
  if (const auto* end = std::get_if<EndRun>(&action))
    trace_.note([&] { return fmt::format("the run ends with {}", end->exit_code); });
  if (const auto* send = std::get_if<SendToAgent>(&action))
    if (std::holds_alternative<StartAttempt>(send->message) ||
        std::holds_alternative<StopAttempt>(send->message))
      trace_.note([&] { return fmt::format("to {}: {}", send->host, describe(send->message)); });
}

void SimulatedCoordinator::set_timer() {
  const int timer = ++timers_;
  const auto deadline = control_.next_deadline();
  if (!deadline) return;
  host_.after(host_.until(*deadline) + draws_.between(Duration(0), kLateTimer), [this, timer] {
    if (lives_ && timer == timers_) handle(CoordinatorTick{});
  });
}

}  // namespace strata::launcher::simulation

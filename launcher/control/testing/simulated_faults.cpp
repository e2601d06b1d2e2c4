// The part of SimulatedRun that brings faults to it.
#include <fmt/core.h>
#include <signal.h>

#include "launcher/control/testing/simulated_run.h"

namespace strata::launcher::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

namespace {

/// An agent whose stream broke has come again by then, if it can.
constexpr seconds kReconnected{4};
/// The first step has the longest limit of those that ranks can hang in here.
constexpr seconds kHangSeen{200};

}  // namespace

void SimulatedRun::bring(const Fault& fault) {
  trace_.note([&] { return "fault: " + describe(fault); });
  switch (fault.kind) {
    case Kind::crashed_agent:
      crash_agents(fault.host);
      note_trouble(fault.host, fault.lasts);
      if (fault.lasts != kForever)
        queue_.after(fault.lasts, [this, host = fault.host] { begin_agent(host); });
      return;
    case Kind::second_agent:
      return send_second_agent(fault);
    case Kind::crashed_host:
      return crash_host(fault);
    case Kind::paused_host:
      return pause(hosts_[static_cast<std::size_t>(fault.host)], fault.lasts);
    case Kind::paused_coordinator:
      return pause(coordinator_host(), fault.lasts);
    case Kind::crashed_coordinator:
      return crash_coordinator(fault);
    case Kind::full_disk:
      disk_.full_until = queue_.now() + fault.lasts;
      return note_trouble(fault.host, fault.lasts);
    case Kind::held_lock:
      disk_.locked_until = std::max(disk_.locked_until, queue_.now() + fault.lasts);
      return checks_.note_delay(fault.lasts + kLostHostsLock);
    case Kind::user_signal:
      return coordinators_.back().user_signal(fault.number);
    case Kind::host_told_to_end:
      return tell_to_end(fault);
    case Kind::crashed_rank:
    case Kind::rank_out_of_memory:
    case Kind::hanging_rank:
      return bring_to_ranks(fault);
    case Kind::slowed_rank:
      return ranks_.slow_one(fault.lasts);
    case Kind::unread_output:
      ranks_.leave_unread(hosts_[static_cast<std::size_t>(fault.host)], fault.lasts);
      return checks_.note_delay(fault.lasts + kHangSeen);
    default:
      return bring_to_network(fault);
  }
}

void SimulatedRun::bring_to_network(const Fault& fault) {
  const bool is_local = scenario_.coordinator_on_host_0 && fault.host == 0;
  if (fault.kind == Kind::broken_stream || is_local) {
    note_trouble(fault.host, kReconnected);
    return network_.break_streams_of(fault.host);
  }
  note_trouble(fault.host, fault.lasts + kReconnected);
  if (fault.kind != Kind::unheard_agent) network_.cut(fault.host, Network::to_agent, fault.lasts);
  if (fault.kind != Kind::deaf_agent)
    network_.cut(fault.host, Network::to_coordinator, fault.lasts);
}

void SimulatedRun::bring_to_ranks(const Fault& fault) {
  if (fault.kind == Kind::hanging_rank) {
    if (ranks_.hang_one()) checks_.note_delay(kHangSeen);
  } else if (ranks_.crash_one(fault.kind == Kind::rank_out_of_memory)) {
    checks_.note_delay(seconds(8));
  }
}

void SimulatedRun::crash_agents(int host) {
  for (SimulatedAgent& agent : agents_)
    if (agent.host() == host) agent.crash();
}

/// The process of the coordinator dies, and with it the agent of its host; the same command may be
/// started there again.
void SimulatedRun::crash_coordinator(const Fault& fault) {
  if (!coordinators_.back().lives()) return;
  coordinators_.back().crash();
  const bool comes_back = fault.lasts != kForever;
  note_trouble_everywhere(comes_back ? fault.lasts + kReconnected : Duration(0));
  if (scenario_.coordinator_on_host_0) crash_agents(0);
  if (!comes_back) return checks_.note_coordinator_lost();
  queue_.after(fault.lasts, [this] {
    coordinator_host().when_it_runs([this] {
      begin_coordinator();
      if (scenario_.coordinator_on_host_0) begin_agent(0);
    });
  });
}

void SimulatedRun::crash_host(const Fault& fault) {
  SimulatedHost& host = hosts_[static_cast<std::size_t>(fault.host)];
  const bool comes_back = fault.lasts != kForever;
  note_trouble(fault.host, fault.lasts);
  checks_.note_delay(scenario_.lost_lock + kLostHostsLock);
  if (&host == &coordinator_host()) {
    coordinators_.back().crash();
    note_trouble_everywhere(comes_back ? fault.lasts + kReconnected : Duration(0));
    if (!comes_back) checks_.note_coordinator_lost();
  }
  for (SimulatedAgent& agent : agents_)
    if (agent.host() == fault.host) agent.crash_with_host();
  host.crash();
  if (!comes_back) return;
  queue_.after(fault.lasts, [this, &host, number = fault.host] {
    host.boot();
    if (&host == &coordinator_host()) begin_coordinator();
    begin_agent(number);
  });
}

/// What starts agents believes that the first one is dead; later it ends that one.
void SimulatedRun::send_second_agent(const Fault& fault) {
  SimulatedAgent* first = agent_of(fault.host);
  note_trouble(fault.host, seconds(15));
  begin_agent(fault.host);
  if (first == nullptr) return;
  hosts_[static_cast<std::size_t>(fault.host)].after(draws_.between(seconds(1), seconds(15)),
                                                     [first] { first->crash(); });
}

/// As a scheduler does that wants the host for something else, and may give it back.
void SimulatedRun::tell_to_end(const Fault& fault) {
  // The agent of the coordinator's host is in its process.
  if (scenario_.coordinator_on_host_0 && fault.host == 0)
    return coordinators_.back().user_signal(SIGTERM);
  SimulatedAgent* agent = agent_of(fault.host);
  if (agent == nullptr) return;
  note_trouble(fault.host, fault.lasts);
  agent->signal(SIGTERM);
  if (fault.lasts != kForever)
    queue_.after(fault.lasts, [this, host = fault.host] { begin_agent(host); });
}

void SimulatedRun::pause(SimulatedHost& host, Duration lasts) {
  if (!host.runs()) return;
  if (&host == &coordinator_host()) note_trouble_everywhere(lasts);
  for (int number = 0; number < scenario_.hosts(); ++number)
    if (&hosts_[static_cast<std::size_t>(number)] == &host) note_trouble(number, lasts);
  host.pause();
  queue_.after(lasts, [this, &host] {
    trace_.note([&] { return host.name() + " goes on"; });
    host.go_on();
  });
}

}  // namespace strata::launcher::simulation

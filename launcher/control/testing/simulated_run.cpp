#include "launcher/control/testing/simulated_run.h"

#include <fmt/core.h>

#include <algorithm>

namespace strata::launcher::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// After the end of a run, what is still on its way must start nothing.
constexpr seconds kAfterTheEnd{15};
/// A host is available after so long without trouble.
constexpr seconds kSettled{10};

std::deque<SimulatedHost> make_hosts(EventQueue& queue, const Scenario& scenario) {
  std::deque<SimulatedHost> hosts;
  for (int host = 0; host < scenario.hosts(); ++host)
    hosts.emplace_back(queue, fmt::format("host{}", host),
                       scenario.clocks[static_cast<std::size_t>(host)]);
  return hosts;
}

std::optional<SimulatedHost> make_lone_host(EventQueue& queue, const Scenario& scenario) {
  if (scenario.coordinator_on_host_0) return {};
  return SimulatedHost(queue, "coordinator", scenario.clocks.back());
}

}  // namespace

SimulatedRun::SimulatedRun(const Scenario& scenario, bool wants_trace)
    : scenario_(scenario),
      draws_(~scenario.seed),
      trace_(queue_, wants_trace),
      checks_(queue_, scenario_, disk_),
      hosts_(make_hosts(queue_, scenario_)),
      lone_coordinator_host_(make_lone_host(queue_, scenario_)),
      network_(queue_, draws_, scenario_.network, hosts_, coordinator_host()),
      ranks_(queue_, draws_, trace_, scenario_, disk_, checks_) {}

void SimulatedRun::run() {
  begin_coordinator();
  for (int host = 0; host < scenario_.hosts(); ++host) {
    const Duration begins = scenario_.first_agents[static_cast<std::size_t>(host)];
    note_trouble(host, begins);
    queue_.after(begins, [this, host] { begin_agent(host); });
  }
  schedule_faults(-1);
  Time until = Time::max();  // unless the run is over
  while (queue_.now() < until || ranks_.any_lives()) {
    if (queue_.empty()) {
      if (checks_.is_over()) return;
      throw CheckFailed("bounded", "nothing happens any more, and the run has not ended");
    }
    queue_.run_next();
    if (!checks_.is_over())
      until = Time::max();
    else if (until == Time::max())
      until = queue_.now() + kAfterTheEnd;
    checks_.on_living(ranks_.attempts_alive());
    checks_.on_time(ranks_.any_lives());
  }
}

/// Faults of an attempt come once, though a later coordinator may use its number again.
void SimulatedRun::schedule_faults(int attempt) {
  if (!scheduled_.insert(attempt).second) return;
  for (const Fault& fault : scenario_.faults)
    if (fault.attempt == attempt)
      queue_.after(fault.time.time_since_epoch(), [this, fault] {
        if (!checks_.is_over()) bring(fault);
      });
}

SimulatedHost& SimulatedRun::coordinator_host() {
  return lone_coordinator_host_ ? *lone_coordinator_host_ : hosts_.front();
}

void SimulatedRun::begin_coordinator() {
  const bool one_lives = !coordinators_.empty() && coordinators_.back().lives();
  if (one_lives || checks_.has_ended() || !coordinator_host().is_up()) return;
  coordinators_.emplace_back(
      static_cast<int>(coordinators_.size()), scenario_, coordinator_host(), draws_, trace_,
      network_, checks_,
      SimulatedCoordinator::Callbacks{
          .available = [this](const std::string& but) { return available(but); },
          .attempt_begins = [this](int attempt) { schedule_faults(attempt); }});
  coordinators_.back().begin();
}

void SimulatedRun::begin_agent(int host) {
  SimulatedHost& place = hosts_[static_cast<std::size_t>(host)];
  place.when_it_runs([this, host, &place] {
    std::optional<milliseconds> lease;
    if (!scenario_.in_one_process) lease = kLease;
    agents_.emplace_back(
        SimulatedAgent::Place{host, fmt::format("agent{}", agents_.size()),
                              scenario_.slots[static_cast<std::size_t>(host)], lease},
        place, draws_, trace_, network_, ranks_);
    agents_.back().connect();
  });
}

SimulatedAgent* SimulatedRun::agent_of(int host) {
  const auto found = std::find_if(agents_.rbegin(), agents_.rend(), [&](const SimulatedAgent& a) {
    return a.host() == host && a.lives();
  });
  return found == agents_.rend() ? nullptr : &*found;
}

std::vector<int> SimulatedRun::available(const std::string& but) {
  std::vector<int> slots;
  for (int host = 0; host < scenario_.hosts(); ++host) {
    const SimulatedAgent* agent = agent_of(host);
    if (agent != nullptr && agent->stream() && network_.is_heard(*agent->stream()) &&
        hosts_[static_cast<std::size_t>(host)].runs() &&
        checks_.well_since(host) + kSettled < queue_.now() &&
        hosts_[static_cast<std::size_t>(host)].name() != but)
      slots.push_back(scenario_.slots[static_cast<std::size_t>(host)]);
  }
  return slots;
}

void SimulatedRun::note_trouble(int host, Duration lasts) {
  checks_.note_trouble(host, queue_.now() + lasts);
}

void SimulatedRun::note_trouble_everywhere(Duration lasts) {
  for (int host = 0; host < scenario_.hosts(); ++host) note_trouble(host, lasts);
}

std::string find_failure(std::uint64_t seed) {
  const Scenario scenario = draw_scenario(seed);
  try {
    SimulatedRun(scenario, false).run();
    return "";
  } catch (const CheckFailed&) {
    // Once more, with what happened as words.
  }
  SimulatedRun again(scenario, true);
  try {
    again.run();
  } catch (const CheckFailed& failed) {
    std::string text =
        fmt::format("check '{}': {}\n{}\n", failed.check(), failed.what(), describe(scenario));
    for (const std::string& line : again.trace().lines()) text += line + "\n";
    return text;
  }
  return fmt::format("seed {} failed only without its trace", seed);
}

}  // namespace strata::launcher::simulation

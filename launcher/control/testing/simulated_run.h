// A whole run in virtual time, in one process: a coordinator, agents on 1 to 4 hosts, their ranks
// and a disk, which meet the faults that a seed draws.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "launcher/control/testing/network.h"
#include "launcher/control/testing/run_checks.h"
#include "launcher/control/testing/simulated_agent.h"
#include "launcher/control/testing/simulated_coordinator.h"
#include "launcher/control/testing/simulated_ranks.h"

namespace strata::launcher::simulation {

class SimulatedRun {
 public:
  SimulatedRun(const Scenario& scenario, bool wants_trace);

  /// Throws CheckFailed. Call it once.
  void run();
  [[nodiscard]] const Trace& trace() const { return trace_; }
  /// The code with which the run ended; nullopt: its coordinator was lost.
  [[nodiscard]] std::optional<int> exit_code() const { return checks_.exit_code(); }
  [[nodiscard]] Duration length() const { return queue_.now().time_since_epoch(); }

 private:
  void schedule_faults(int attempt);
  void bring(const Fault& fault);
  void bring_to_network(const Fault& fault);
  void bring_to_ranks(const Fault& fault);
  void crash_agents(int host);
  void crash_coordinator(const Fault& fault);
  void crash_host(const Fault& fault);
  void tell_to_end(const Fault& fault);
  void send_second_agent(const Fault& fault);
  void pause(SimulatedHost& host, Duration lasts);
  /// Another one that takes up the run, unless one lives.
  void begin_coordinator();
  void begin_agent(int host);
  /// Returns the newest living agent of the host; nullptr: none.
  [[nodiscard]] SimulatedAgent* agent_of(int host);
  /// Returns the slots of the hosts that could be used; of all but one, where one is named.
  [[nodiscard]] std::vector<int> available(const std::string& but = "");
  [[nodiscard]] SimulatedHost& coordinator_host();
  void note_trouble(int host, Duration lasts);
  void note_trouble_everywhere(Duration lasts);

  const Scenario scenario_;
  EventQueue queue_;
  Draws draws_;
  Trace trace_;
  SharedDisk disk_;
  RunChecks checks_;
  std::deque<SimulatedHost> hosts_;
  std::optional<SimulatedHost> lone_coordinator_host_;  ///< nullopt: it is on host 0
  Network network_;
  SimulatedRanks ranks_;
  std::deque<SimulatedCoordinator> coordinators_;  ///< the last one lives, or none
  std::set<int> scheduled_;                        ///< attempts whose faults are known
  std::deque<SimulatedAgent> agents_;              ///< also those that have ended
};

/// Runs what the seed draws; returns "" or, if a check failed, which one, the scenario and the last
/// events.
std::string find_failure(std::uint64_t seed);

}  // namespace strata::launcher::simulation

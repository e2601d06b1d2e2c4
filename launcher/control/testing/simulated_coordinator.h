// The coordinator's process of a simulated run: the Coordinator and HangWatch machines and their
// timer. What they do goes to the network and to the checks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/control/coordinator_control.h"
#include "launcher/control/testing/network.h"
#include "launcher/control/testing/run_checks.h"
#include "launcher/control/testing/trace.h"

namespace strata::launcher::simulation {

class SimulatedCoordinator : public CoordinatorEnd {
 public:
  struct Callbacks {
    /// Slots of the hosts that could be used, but for the named one.
    std::function<std::vector<int>(const std::string& but)> available;
    std::function<void(int attempt)> attempt_begins;  ///< before any host hears of it
  };
  /// Borrows all but the callbacks. `number`: of the coordinators of the run before it.
  SimulatedCoordinator(int number, const Scenario& scenario, SimulatedHost& host, Draws& draws,
                       Trace& trace, Network& network, RunChecks& checks, Callbacks callbacks);

  void begin();
  void crash();
  void user_signal(int number);
  [[nodiscard]] bool lives() const { return lives_; }

  void hear(const std::string& host, const std::string& agent,
            const AgentMessage& message) override;
  void stream_broke(const std::string& host, const std::string& agent) override;

 private:
  void handle(const CoordinatorEvent& event);
  void note(const ControlAction& action);
  void note_told(const AttemptFacts& facts);
  void set_timer();
  [[nodiscard]] const Coordinator& machine() const { return *control_.coordinator(); }

  const int number_;
  SimulatedHost& host_;
  Draws& draws_;
  Trace& trace_;
  Network& network_;
  RunChecks& checks_;
  const Callbacks callbacks_;
  CoordinatorControl control_;
  bool lives_ = true;
  int timers_ = 0;  ///< that were set; only the last one counts
};

}  // namespace strata::launcher::simulation

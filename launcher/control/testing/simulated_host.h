// A host of a simulated run: its clock, and whether it runs, pauses or is down. What processes on
// it do goes through after(), so that nothing happens on a host that does not run.
#pragma once

#include <string>
#include <vector>

#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

class SimulatedHost {
 public:
  /// Borrows the queue.
  SimulatedHost(EventQueue& queue, std::string name, HostClock clock);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_up() const { return up_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  [[nodiscard]] bool runs() const { return up_ && !paused_; }
  [[nodiscard]] Time local_time() const { return clock_.read(queue_.now()); }
  /// Returns how long it takes until the host's clock shows `local`; 0 if that is past.
  [[nodiscard]] Duration until(Time local) const;

  /// Calls it after `delay`, or once a pause that lasts then ends; never after a crash.
  void after(Duration delay, Callback callback);
  /// Calls it now, or once the pause ends.
  void when_it_runs(Callback callback);

  void pause() { paused_ = up_; }
  /// Does all that had been due during the pause, in one moment.
  void go_on();
  void crash();
  void boot() { up_ = true; }

 private:
  EventQueue& queue_;
  std::string name_;
  HostClock clock_;
  bool up_ = true;
  bool paused_ = false;
  int crashes_ = 0;
  std::vector<Callback> deferred_;
};

}  // namespace strata::launcher::simulation

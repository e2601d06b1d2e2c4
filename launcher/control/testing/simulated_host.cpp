#include "launcher/control/testing/simulated_host.h"

#include <algorithm>
#include <utility>

namespace strata::launcher::simulation {

SimulatedHost::SimulatedHost(EventQueue& queue, std::string name, HostClock clock)
    : queue_(queue), name_(std::move(name)), clock_(clock) {}

Duration SimulatedHost::until(Time local) const {
  return std::max(Duration(0), clock_.when(local) - queue_.now());
}

void SimulatedHost::after(Duration delay, Callback callback) {
  queue_.after(delay, [this, crashes = crashes_, callback = std::move(callback)]() mutable {
    if (crashes == crashes_) when_it_runs(std::move(callback));
  });
}

void SimulatedHost::when_it_runs(Callback callback) {
  if (!up_) return;
  if (paused_)
    deferred_.push_back(std::move(callback));
  else
    callback();
}

void SimulatedHost::go_on() {
  if (!paused_) return;
  paused_ = false;
  for (const Callback& callback : std::exchange(deferred_, {})) callback();
}

void SimulatedHost::crash() {
  up_ = false;
  paused_ = false;
  ++crashes_;
  deferred_.clear();
}

}  // namespace strata::launcher::simulation

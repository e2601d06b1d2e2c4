// Prints where the time goes every so many steps (wall_clock_breakdown).
#pragma once

#include <optional>

#include "train/run/run_listeners.h"
#include "train/session/step_breakdown.h"

namespace strata::train {

/// A RunListener; borrows the listeners that hear the lines.
class BreakdownListener {
 public:
  /// Prints as often as the run's lines; ten lines in all if that is not said.
  explicit BreakdownListener(const RunListeners& listeners) : listeners_(listeners) {}
  void operator()(const RunEvent& event) {
    if (const auto* equipping = std::get_if<Equipping>(&event))
      equipping->observers.push_back(&breakdown_.emplace(
          equipping->machine.host_is_device() ? Measured::threads : Measured::device,
          equipping->steps_per_print, equipping->steps));
    if (const auto* done = std::get_if<StepDone>(&event))
      if (const auto line = breakdown_->complete(done->step, done->seconds))
        listeners_.print(*line);
  }

 private:
  const RunListeners& listeners_;
  std::optional<StepBreakdown> breakdown_;
};

}  // namespace strata::train

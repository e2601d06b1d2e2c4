// Prints where the time goes every so many steps (wall_clock_breakdown).
#pragma once

#include <optional>

#include "train/run/run_listeners.h"
#include "train/session/step_breakdown.h"

namespace strata::train {

/// A RunListener; borrows the listeners that hear the lines.
class BreakdownListener {
 public:
  /// `every`: steps between lines; 0: ten lines in all.
  BreakdownListener(std::int64_t every, const RunListeners& listeners)
      : every_(every), listeners_(listeners) {}
  void operator()(const RunEvent& event) {
    if (const auto* equipping = std::get_if<Equipping>(&event))
      equipping->observers.push_back(&breakdown_.emplace(
          equipping->machine.host_is_device() ? Measured::threads : Measured::device, every_,
          equipping->steps));
    if (const auto* done = std::get_if<StepDone>(&event))
      if (const auto line = breakdown_->complete(done->step, done->seconds))
        listeners_.print(*line);
  }

 private:
  std::int64_t every_;
  const RunListeners& listeners_;
  std::optional<StepBreakdown> breakdown_;
};

}  // namespace strata::train

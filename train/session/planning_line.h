// Shows progress while settings are searched.
#pragma once

#include <string>

#include "train/run/planning_beat.h"
#include "train/session/console.h"

namespace strata::train {

/// Rewrites one line on a terminal, which the answer replaces; elsewhere notes once that planning
/// goes on, after ten seconds.
class PlanningLine {
 public:
  explicit PlanningLine(Console& console) : console_(console) {}
  void show(const PlanningProgress& progress);
  /// Removes a rewritten line.
  void finish();

 private:
  Console& console_;
  bool noted_ = false;
};

}  // namespace strata::train

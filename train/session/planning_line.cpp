#include "train/session/planning_line.h"

#include <fmt/format.h>

namespace strata::train {

void PlanningLine::show(const PlanningProgress& progress) {
  constexpr double kSilentSeconds = 10;
  const std::string time = fmt::format("{:.0f} s", progress.seconds);
  const std::string done = fmt::format("{} Graphs built", progress.graphs);
  if (console_.rewrites()) return console_.show_progress({"planning", time, done});
  if (noted_ || progress.seconds < kSilentSeconds) return;
  noted_ = true;
  console_.note(fmt::format("planning goes on after {}: {}", time, done));
}

void PlanningLine::finish() {
  console_.drop_progress();
  noted_ = false;
}

}  // namespace strata::train

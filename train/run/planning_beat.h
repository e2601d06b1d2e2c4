// Tells how far the search for settings is, which may take long.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/beat.h"

namespace strata::train {

/// How far a search for settings is.
struct PlanningProgress {
  std::int64_t plans = 0;  ///< that were compiled so far; how many are still to come is not known
  double seconds = 0;      ///< since it began
};

/// Counts the Plans that a search compiles, as long as it lives.
class PlanningBeat {
 public:
  /// Is told of each Plan that is compiled and, by nothing, that the search is over.
  using Hear = std::function<void(const std::optional<PlanningProgress>&)>;

  /// Tells `hear` and `further`, the rank's own beat, on the thread that compiles.
  explicit PlanningBeat(Hear hear, Beat further = {});
  PlanningBeat(const PlanningBeat&) = delete;
  PlanningBeat& operator=(const PlanningBeat&) = delete;
  ~PlanningBeat();

  /// Returns what to give to a ProgramRequest as its beat.
  [[nodiscard]] const Beat& beat() const { return beat_; }

 private:
  Hear hear_;
  Beat beat_;
};

}  // namespace strata::train

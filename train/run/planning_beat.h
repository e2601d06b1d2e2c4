// Tells how far the search for settings is, which may take long.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/beat.h"

namespace strata::train {

/// How far a search for settings is.
struct PlanningProgress {
  std::int64_t graphs = 0;  ///< that were built so far, several for each Plan that is compiled; how
                            ///< many are still to come is not known
  double seconds = 0;       ///< since it began
};

/// Counts the Graphs that a search builds, as long as it lives.
class PlanningBeat {
 public:
  /// Is told of Graphs, each time that the thread which made this object builds one, with those
  /// that other threads have built meanwhile; and, by nothing, that the search is over.
  using Hear = std::function<void(const std::optional<PlanningProgress>&)>;

  /// Tells `hear` on this thread, and `further`, the rank's own beat, on any that builds.
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

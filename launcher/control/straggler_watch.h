// Notices ranks for which all others wait, step after step (docs/faults.md, 9). A function of
// what looks at them tell, and of the times of the looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "launcher/control/rank_state.h"

namespace strata::launcher {

/// A rank that takes longer for its own part of each step than others.
struct Straggler {
  int rank = 0;
  double seconds = 0;  ///< in a step, waits for others left out
  double usual = 0;    ///< that the rank in the middle does; of two ranks, the faster one
  std::int64_t steps = 0;
};

/// Compares the times in which ranks work, from their pages: waits for one another are no part.
/// Ranks whose devices do not tell of it are not judged.
class StragglerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A rank is one after so many steps, and so much time, in which it took so many times as long.
  static constexpr std::int64_t kSteps = 20;
  static constexpr std::chrono::seconds kTime{10};
  static constexpr double kRatio = 1.5;
  /// Less than this, in seconds per step, is no loss to speak of.
  static constexpr double kLeast = 1e-3;

  /// Takes a look at all ranks of the attempt; returns the slowest of those that have become
  /// stragglers. A rank is told of again only after it was none.
  std::optional<Straggler> look(TimePoint now, std::span<const RankState> ranks);
  /// Forgets all: call it when ranks start again.
  void start_again() { *this = StragglerWatch(); }

 private:
  struct Worked {
    std::int64_t ns = 0, steps = 0;
  };
  std::optional<TimePoint> since_;
  std::vector<Worked> then_;  ///< at since_, by place
  std::set<int> slow_;        ///< ranks that have been told of
};

}  // namespace strata::launcher

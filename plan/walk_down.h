// Walks down from an amount of memory to the least one that is taken.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "plan/budget_search.h"

namespace strata::plan {

/// An amount that is notably less than another is at most this part of it.
inline constexpr double kNextBelow = 0.99;

/// Lowers an amount as long as one that is notably less is taken. Each that is taken lets the next
/// be twice as far below; one that is not is followed by the nearest one. `amount()` is what was
/// taken last; `is_taken(bytes)` tries another amount, after which amount() is at most that if it
/// was taken. Returns true once the nearest amount below is not taken, false if `most_tries` ended
/// the walk before.
template <typename Amount, typename IsTaken>
bool walk_down(const Amount& amount, const IsTaken& is_taken,
               int most_tries = std::numeric_limits<int>::max()) {
  double part = kNextBelow;
  for (int i = 0; i < most_tries; ++i) {
    if (is_taken(scaled(amount(), part)))
      part *= part;
    else if (std::exchange(part, kNextBelow) == kNextBelow)
      return true;
  }
  return false;
}

}  // namespace strata::plan

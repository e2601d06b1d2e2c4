// Numbers the times at which lifetimes begin and end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

/// The begin and end of a lifetime, as numbers in the order of all times of its problem.
struct HeldTimes {
  std::int32_t begin, end;
};

/// Returns the numbered times of each lifetime.
std::vector<HeldTimes> number_times(const std::vector<Lifetime>& lifetimes);

/// Times of a lifetime that is never held, to fill a block up.
constexpr HeldTimes kNeverHeld{std::numeric_limits<std::int32_t>::max(), 0};

}  // namespace strata::runtime

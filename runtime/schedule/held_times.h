// Times of lifetimes as small numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

/// When a lifetime begins and ends, as numbers in the order of all times of its problem.
struct HeldTimes {
  std::int32_t begin, end;
};

/// Per lifetime.
std::vector<HeldTimes> number_times(const std::vector<Lifetime>& lifetimes);

}  // namespace strata::runtime

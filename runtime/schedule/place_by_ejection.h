// Tighter places for buffers that have some: who finds no hole takes its place from others.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

/// Lays lifetimes that lie apart in an arena of `arena_bytes` out anew in less and less memory,
/// until one needs at most `enough_bytes` or a bounded effort is spent; those with `is_placed`
/// stay. What is tried wants memory of a size: large lifetimes are placed from its top, small ones
/// from its bottom, and one that fits nowhere goes where it drives out those that seldom were in
/// want of a place. Returns the size of the arena, bytes; a failure leaves all as it was. The same
/// answer for the same question.
std::int64_t place_by_ejection(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                               std::int64_t arena_bytes, std::int64_t enough_bytes);

}  // namespace strata::runtime

// Finds tighter places for placed buffers: one that finds no hole takes its place from others.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

/// Lays lifetimes that lie apart in an arena of `arena_bytes` out anew in less and less memory,
/// until one layout needs at most `enough_bytes` or a bounded effort is spent; lifetimes with
/// `is_placed` stay. Each attempt has a fixed size: large lifetimes are placed from its top, small
/// ones from its bottom, and one that fits nowhere drives out those that seldom had to drive out
/// others. Returns the size of the arena in bytes; if all attempts fail, nothing is changed.
/// Deterministic.
std::int64_t place_by_ejection(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                               std::int64_t arena_bytes, std::int64_t enough_bytes);

}  // namespace strata::runtime

// Finds addresses for buffers that are held for a time, so that few bytes serve many.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::runtime {

/// A buffer held from `begin` until just before `end`: nanoseconds of a simulated run, or positions
/// in a list of instructions.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t offset_bytes = 0;  ///< the result, or the given place if is_placed
  bool is_placed = false;
  bool operator==(const Lifetime&) const = default;
};

/// The effort: one order for few lifetimes among many that are placed, few for a schedule of a
/// Program that is only compared with others, more for one of many schedules, many for the one that
/// is kept.
enum class PlaceSearch : std::uint8_t { once, rough, quick, thorough };

/// Gives every lifetime that is not placed yet a place, a multiple of `alignment`, so that no two
/// overlap in both time and bytes. Returns the size of the arena in bytes. Tries several orders
/// within a bounded effort, until one needs at most `enough_bytes` (or what is held at one time, if
/// that is more), and keeps the smallest. Deterministic.
std::int64_t place_lifetimes(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                             std::int64_t enough_bytes = 0,
                             PlaceSearch search = PlaceSearch::quick);

/// Returns the largest sum of bytes (each rounded up to `alignment`) held at one time.
std::int64_t largest_held(const std::vector<Lifetime>& lifetimes, std::int64_t alignment);

/// Rounds `bytes` up to a multiple of `alignment`.
constexpr std::int64_t aligned(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace strata::runtime

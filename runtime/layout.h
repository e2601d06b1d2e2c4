// Addresses: every transient root of a Graph gets a fixed offset in its tier's arena.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/graph.h"
#include "runtime/program.h"

namespace strata::runtime {

/// One buffer to place: bytes, and the first and last list position that touches it.
struct Interval {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
  std::int64_t offset_bytes = 0;  ///< result, relative to the start of the transient region
  std::int64_t alignment = kArenaAlignment;  ///< of its place and, rounded up, of its room
};

/// Places intervals that are live at the same position side by side, in several orders (bytes x
/// lifetime, bytes, first use, ...), and keeps the smallest result: the same on every rank and run.
/// Returns the size of the region in bytes.
std::int64_t place_intervals(std::vector<Interval>& intervals);

/// Largest sum of rooms live at one position.
std::int64_t largest_live_set(const std::vector<Interval>& intervals, int positions);

/// Lets outputs take the storage of inputs where the operation allows it and nobody reads the input
/// later: output roots become views. The only user of Operation::aliases.
void alias_in_place(Graph& graph);

}  // namespace strata::runtime

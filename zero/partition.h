// Computes which rank owns which elements of a unit's flat space. All functions are pure.
#pragma once

#include <vector>

#include "comm/collective.h"

namespace strata::zero {

/// Cuts `elements` (whole cells of runtime::kCellElements) over `data_ranks` ranks: rank r owns
/// cells [r * cells / data_ranks, (r + 1) * cells / data_ranks). Borders depend on nothing else;
/// shards differ by at most one cell and may be empty.
comm::Partition partition_unit(std::int64_t elements, int data_ranks);

/// Returns the number of elements of the largest of these shards.
std::int64_t largest_shard(std::int64_t elements, int data_ranks);

/// Elements [begin, end) of flat space.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t elements() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

/// Returns what `rank` owns in that partition.
ElementRange shard_of(std::int64_t elements, int data_ranks, int rank);

/// Returns the part of `partition` inside [begin, end), relative to begin.
comm::Partition slice(const comm::Partition& partition, std::int64_t begin, std::int64_t end);

/// Cuts `elements` into pieces of at most `bucket` elements (whole cells, at least one cell each).
std::vector<ElementRange> cut(std::int64_t elements, std::int64_t bucket);

/// Returns the overlap of two ranges; an empty one has begin == end.
ElementRange intersect(const ElementRange& a, const ElementRange& b);

}  // namespace strata::zero

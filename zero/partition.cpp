#include "zero/partition.h"

#include <algorithm>

#include "core/check.h"
#include "runtime/graph/parameter_unit.h"

namespace strata::zero {

namespace {

/// Returns where the shard of `rank` begins.
std::int64_t bound_of(std::int64_t elements, int data_ranks, int rank) {
  return rank * (elements / runtime::kCellElements) / data_ranks * runtime::kCellElements;
}

}  // namespace

comm::Partition partition_unit(std::int64_t elements, int data_ranks) {
  STRATA_CHECK(data_ranks >= 1 && elements % runtime::kCellElements == 0, elements, data_ranks);
  comm::Partition partition;
  for (int r = 0; r <= data_ranks; ++r)
    partition.bounds.push_back(bound_of(elements, data_ranks, r));
  return partition;
}

ElementRange shard_of(std::int64_t elements, int data_ranks, int rank) {
  return {bound_of(elements, data_ranks, rank), bound_of(elements, data_ranks, rank + 1)};
}

std::int64_t largest_shard(std::int64_t elements, int data_ranks) {
  return (elements / runtime::kCellElements + data_ranks - 1) / data_ranks * runtime::kCellElements;
}

comm::Partition slice(const comm::Partition& partition, std::int64_t begin, std::int64_t end) {
  comm::Partition piece;
  for (std::int64_t bound : partition.bounds)
    piece.bounds.push_back(std::clamp(bound, begin, end) - begin);
  return piece;
}

std::vector<ElementRange> cut(std::int64_t elements, std::int64_t bucket) {
  const std::int64_t step =
      std::max<std::int64_t>(bucket / runtime::kCellElements, 1) * runtime::kCellElements;
  std::vector<ElementRange> pieces;
  for (std::int64_t begin = 0; begin < elements; begin += step)
    pieces.push_back({begin, std::min(begin + step, elements)});
  return pieces;
}

ElementRange intersect(const ElementRange& a, const ElementRange& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace strata::zero

#include "comm/hosts/partial_sums.h"

#include <algorithm>
#include <bit>

namespace strata::comm {

std::vector<Subtree> largest_subtrees(int begin, int end, int world) {
  const int root = static_cast<int>(std::bit_ceil(static_cast<unsigned>(world)));
  std::vector<Subtree> subtrees;
  for (int at = begin; at < end;) {
    int width = 1;
    while (width < root && at % (2 * width) == 0 && std::min(at + 2 * width, world) <= end)
      width *= 2;
    subtrees.push_back({at, std::min(width, world - at)});
    at += width;
  }
  return subtrees;
}

std::vector<PartialSum> sums_from(const HostLayout& layout, int rank) {
  const int host = layout.host_of(rank);
  const auto subtrees = largest_subtrees(layout.first(host), layout.end(host), layout.world);
  std::vector<PartialSum> sums;
  for (int to = 0; to < layout.world; ++to)
    if (layout.host_of(to) != host && layout.counterpart(to, host) == rank)
      for (const Subtree& subtree : subtrees) sums.push_back({rank, to, subtree});
  return sums;
}

std::vector<PartialSum> sums_to(const HostLayout& layout, int rank) {
  std::vector<PartialSum> sums;
  for (int host = 0; host < layout.hosts(); ++host)
    if (host != layout.host_of(rank))
      for (const Subtree& subtree :
           largest_subtrees(layout.first(host), layout.end(host), layout.world))
        sums.push_back({layout.counterpart(rank, host), rank, subtree});
  return sums;
}

}  // namespace strata::comm

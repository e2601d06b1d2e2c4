#include "comm/partial_sums.h"

#include <algorithm>
#include <bit>

namespace strata::comm {
namespace {

int sender(const HostLayout& layout, int host, const Subtree& subtree, int to) {
  return subtree.leaves == 1 ? subtree.first : layout.counterpart(to, host);
}

}  // namespace

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

std::vector<Subtree> subtrees_of(const HostLayout& layout, int host) {
  return largest_subtrees(layout.first(host), layout.end(host), layout.world);
}

std::vector<Subtree> subtrees_of(const HostLayout& layout) {
  std::vector<Subtree> all;
  for (int host = 0; host < layout.hosts(); ++host)
    for (const Subtree& subtree : subtrees_of(layout, host)) all.push_back(subtree);
  return all;
}

std::vector<Subtree> made_sums(const HostLayout& layout, int host) {
  std::vector<Subtree> made = subtrees_of(layout, host);
  std::erase_if(made, [](const Subtree& subtree) { return subtree.leaves == 1; });
  return made;
}

bool covers(std::span<const Subtree> subtrees, int rank) {
  return std::ranges::any_of(subtrees, [&](const Subtree& subtree) {
    return subtree.first <= rank && rank < subtree.first + subtree.leaves;
  });
}

std::vector<PartialSum> sums_from(const HostLayout& layout, int rank) {
  const int host = layout.host_of(rank);
  const std::vector<Subtree> subtrees = subtrees_of(layout, host);
  std::vector<PartialSum> sums;
  for (int to = 0; to < layout.world; ++to) {
    if (layout.host_of(to) == host) continue;
    for (const Subtree& subtree : subtrees)
      if (sender(layout, host, subtree, to) == rank) sums.push_back({rank, to, subtree});
  }
  return sums;
}

std::vector<PartialSum> sums_to(const HostLayout& layout, int rank) {
  std::vector<PartialSum> sums;
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host_of(rank)) continue;
    for (const Subtree& subtree : subtrees_of(layout, host))
      sums.push_back({sender(layout, host, subtree, rank), rank, subtree});
  }
  return sums;
}

}  // namespace strata::comm
